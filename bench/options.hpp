// Options: `--key value` pairs of a program of the benchmark, and `key=value` words of a command it is told.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

namespace bench {

class Options {
  public:
    Options(int argc, char** argv) {
        for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
    }
    // "verb key=value key=value"
    explicit Options(const std::string& line) {
        std::istringstream words(line);
        words >> verb_;
        for (std::string word; words >> word;) {
            const auto equals = word.find('=');
            values_["--" + word.substr(0, equals)] = equals == std::string::npos ? "1" : word.substr(equals + 1);
        }
    }
    const std::string& verb() const { return verb_; }
    std::string text(const std::string& key, const std::string& otherwise = "") const {
        const auto found = values_.find("--" + key);
        return found == values_.end() ? otherwise : found->second;
    }
    std::uint64_t number(const std::string& key, std::uint64_t otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : std::strtoull(value.c_str(), nullptr, 10);
    }
    double real(const std::string& key, double otherwise) const {
        const std::string value = text(key);
        return value.empty() ? otherwise : std::strtod(value.c_str(), nullptr);
    }

  private:
    std::string verb_;
    std::map<std::string, std::string> values_;
};

}  // namespace bench
