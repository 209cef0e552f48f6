// What encoding made of each key's arrays on one node, until the coordinator is told. Bounded: keys that have no room are told as one, key 0.
#pragma once

#include <map>
#include <utility>

#include "model/key_efforts.hpp"

namespace cairn {

class KeysSeen {
  public:
    // `all`: of a run, of which `keys` are some; the rest is of key 0.
    void add(KeyEncoded all, const std::vector<KeyEncoded>& keys);
    // At most keys_max rows, those of the most bytes; what is left of others is in key 0's. Told once.
    std::vector<KeyEncoded> take();
    std::vector<KeyEncoded> all() const;  // by key

  private:
    void put(const KeyEncoded& some);
    std::map<std::pair<std::uint32_t, Effort>, KeyEncoded> rows_;
};

}  // namespace cairn
