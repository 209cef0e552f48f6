// The rule of lineage.hpp, in this order: what everybody tells of each incarnation; records of which nothing is known; the head; the chain.
#include "catalog/lineage.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace cairn {

namespace {

std::string command(const std::string& name) { return "`cairn repair " + name + "`"; }

// Nothing is damaged as far as anybody knows: there is nothing to repair.
constexpr const char* right_to_read = "its owner can give the right to read it (chmod g+r)";

Status passed_over(const Status& damage, const std::string& name) {
    const bool may_not_read = damage.code() == Code::permission;
    return Status(damage.code(), damage.text() + "; passed over: " + (may_not_read ? right_to_read : command(name).c_str()));
}

Status doubt(const Status& damage, const std::string& name, const std::string& what) {
    if (damage.code() == Code::permission) return Status(damage.code(), damage.text() + ": " + what + "; " + right_to_read);
    return Status(damage.code(), damage.text() + ": " + what + "; `cairn repair " + name + "` tells what is left, and with --forget goes on without it");
}

// What decides is not passed over.
bool is_cause(const Status& doubt, const Status& passed) { return doubt.text().starts_with(passed.text().substr(0, passed.text().rfind("; passed over"))) && !doubt.ok(); }

// What is known of one incarnation, whoever told it.
struct Known {
    std::uint64_t epoch = 0;  // 0: nothing tells
    Parent parent;
    bool counts = false;            // committed, sealed, or restored from something
    bool is_told = false;           // by a version: its parent, or that it has none
    const Status* lost = nullptr;   // its record of that can not be read: why
};

class Judge {
  public:
    Judge(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed)
        : records_(records), entries_(entries), sealed_(sealed) {
        hear_records();
        hear_versions();
        place();
    }

    Lineage judge(Id128 own) {
        for (const LineageEntry& entry : records_.opens)
            for (const auto& damage : {entry.open_damage, entry.from_damage})
                if (damage) lineage_.passed_over.push_back(passed_over(*damage, records_.name));
        if (!records_.unlisted.ok()) lineage_.passed_over.push_back(passed_over(records_.unlisted, records_.name));
        for (const auto& [incarnation, known] : known_)
            if (known.counts && (!head_ || known.epoch > known_.at(*head_).epoch)) head_ = incarnation;
        find_doubts_of_head(own);
        if (head_) follow();
        std::erase_if(lineage_.passed_over, [&](const Status& status) { return is_cause(lineage_.head, status) || is_cause(lineage_.tail, status); });
        return std::move(lineage_);
    }

  private:
    void hear_records() {
        for (const LineageEntry& entry : records_.opens) {
            if (!entry.open.incarnation) {
                unplaced_.push_back(&entry);
                continue;
            }
            Known& known = known_[entry.open.incarnation];
            known.epoch = entry.open.epoch;
            if (entry.from) known.parent = entry.from->parent;
            if (entry.from_damage) known.lost = &*entry.from_damage;
            known.counts = entry.from || entry.from_damage;
        }
    }

    // `fresh`: that it has no parent is told, too. A record that can be read and says otherwise is believed.
    Known& hear(Id128 incarnation, std::uint64_t epoch, const Parent& parent, bool fresh) {
        Known& known = known_[incarnation];
        known.epoch = std::max(known.epoch, epoch);
        if (parent.incarnation) known.parent = parent;
        if (parent.incarnation || fresh) known.is_told = true;
        return known;
    }

    void hear_versions() {
        for (const CatalogEntry& entry : entries_)
            if (entry.committed()) hear(entry.key.incarnation, entry.manifest->epoch, entry.manifest->parent, true).counts = true;
        std::set<std::pair<Id128, Version>> given_up;
        for (const CatalogEntry& entry : entries_)
            if (entry.manifest && entry.manifest->abandoned) given_up.emplace(entry.key.incarnation, entry.key.version);
        for (const SealedVersion& version : sealed_) {
            Known& known = hear(version.incarnation, version.epoch, version.parent, version.version != 0);
            known.counts |= version.is_whole && given_up.count({version.incarnation, version.version}) == 0;  // that one is never committed: its image has not left scratch yet
        }
        for (const CatalogEntry& entry : entries_)
            if (entry.manifest && entry.manifest->abandoned) hear_tombstone(*entry.manifest);
        for (const CatalogEntry& entry : entries_) {
            if (!entry.damage || entry.unlisted()) continue;
            const auto known = known_.find(entry.key.incarnation);  // it may have been a commit
            if (known != known_.end()) known->second.counts = true;
            else unknown_commit_ = &*entry.damage;
        }
    }

    // Who removes writes what it knows, which may be nothing: an epoch is believed that a record has, and a parent that is one.
    void hear_tombstone(const ManifestFacts& tombstone) {
        const bool fits = std::any_of(unplaced_.begin(), unplaced_.end(), [&](const LineageEntry* entry) { return entry->open.epoch == tombstone.epoch; });
        if (known_.count(tombstone.key.incarnation)) hear(tombstone.key.incarnation, 0, tombstone.parent, false);
        else if (fits) hear(tombstone.key.incarnation, tombstone.epoch, tombstone.parent, false);
    }

    // Records of which only the epoch is known are those of the incarnation that tells this epoch.
    void place() {
        std::erase_if(unplaced_, [&](const LineageEntry* entry) {
            const auto its = std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return each.second.epoch == entry->open.epoch; });
            if (its == known_.end()) return false;
            its->second.counts |= entry->from_damage.has_value();
            if (entry->from_damage) its->second.lost = &*entry->from_damage;
            return true;
        });
    }

    void find_doubts_of_head(Id128 own) {
        const std::uint64_t head_epoch = head_ ? known_.at(*head_).epoch : 0;
        const std::string newest = ", so which version is the newest can not be told";
        if (!records_.unlisted.ok())
            lineage_.head = doubt(records_.unlisted, records_.name, "it tells which opens of " + records_.name + " went back to an older version" + newest);
        for (const LineageEntry* entry : unplaced_) {
            if (entry->open.epoch <= head_epoch || !lineage_.head.ok()) continue;
            if (entry->from_damage) lineage_.head = doubt(*entry->from_damage, records_.name, went_back(*entry) + newest);
            else if (unknown_commit_) lineage_.head = doubt(*entry->open_damage, records_.name, "whose open that was nothing else tells, and it may have committed (" + unknown_commit_->text() + ")" + newest);
        }
        find_hidden(own, head_epoch);
    }

    // Who committed nothing that can be seen, and went back to nothing, may have committed where nothing can be seen.
    void find_hidden(Id128 own, std::uint64_t head_epoch) {
        const bool others = !head_ || std::any_of(records_.opens.begin(), records_.opens.end(), [&](const LineageEntry& entry) {
            return entry.open.epoch > head_epoch && (!entry.open.incarnation || entry.open.incarnation != own);
        });
        for (const CatalogEntry& entry : entries_) {
            if (!entry.unlisted()) continue;
            lineage_.passed_over.push_back(passed_over(*entry.damage, records_.name));
            if (!others || entry.key.version < lineage_.hidden_max) continue;
            lineage_.hidden_max = entry.key.version;
            lineage_.hidden = doubt(*entry.damage, records_.name, "it may hold a newer version than all that can be seen");
        }
    }

    std::string went_back(const LineageEntry& entry) const {
        return "the open of epoch " + std::to_string(entry.open.epoch) + " went on from a version that nothing else tells";
    }

    void follow() {
        std::set<Id128> visited;
        std::uint64_t child_epoch = UINT64_MAX;
        Id128 at = *head_;
        for (Version version_max = UINT64_MAX; at && visited.insert(at).second;) {
            const auto found = known_.find(at);
            lineage_.links.push_back({at, found == known_.end() ? 0 : found->second.epoch, version_max});
            if (found == known_.end()) return doubt_unknown(child_epoch);
            const Known& known = found->second;
            const bool lost = known.lost && !known.is_told;
            if (lost) lineage_.tail = doubt(*known.lost, records_.name, "what incarnation " + at.hex() + " went on from nothing else tells, so older versions can not be told");
            if (lost) return;
            child_epoch = known.epoch;
            version_max = std::min(version_max, known.parent.version);
            at = known.parent.incarnation;
        }
    }

    // The chain comes to an incarnation that nothing tells anything of: one whose records are damaged, if there are such.
    void doubt_unknown(std::uint64_t child_epoch) {
        for (const LineageEntry* entry : unplaced_)
            if (entry->from_damage && entry->open.epoch < child_epoch && lineage_.tail.ok())
                lineage_.tail = doubt(*entry->from_damage, records_.name, went_back(*entry) + ", so older versions can not be told");
    }

    const LineageRecords& records_;
    const std::vector<CatalogEntry>& entries_;
    const std::vector<SealedVersion>& sealed_;
    std::map<Id128, Known> known_;
    std::vector<const LineageEntry*> unplaced_;   // of no known incarnation
    const Status* unknown_commit_ = nullptr;      // a damaged manifest of one whose epoch nothing tells
    std::optional<Id128> head_;
    Lineage lineage_;
};

}  // namespace

bool Lineage::contains(Id128 incarnation, Version version) const {
    return std::any_of(links.begin(), links.end(), [&](const LineageLink& link) { return link.incarnation == incarnation && version <= link.version_max; });
}

Status Lineage::doubt_of(Version newest) const {
    TRY(head);
    if (newest < hidden_max) TRY(hidden);
    return newest == 0 ? tail : Status();
}

Lineage current_lineage(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed, Id128 own) {
    return Judge(records, entries, sealed).judge(own);
}

Told told_of(const LineageEntry& record, const std::vector<CatalogEntry>& entries, const std::vector<SealedVersion>& sealed) {
    Told told;
    told.incarnation = record.open.incarnation;
    if (record.from) told.parent = record.from->parent;
    told.parent_told = record.from.has_value();
    const auto hear = [&](Id128 incarnation, std::uint64_t epoch, const Parent& parent, bool fresh, std::uint32_t ranks) {
        if (told.incarnation ? incarnation != told.incarnation : epoch != record.open.epoch) return;
        told.incarnation = incarnation;
        if (parent.incarnation) told.parent = parent;
        told.parent_told = told.parent_told || fresh || parent.incarnation;
        if (ranks != 0) told.ranks = ranks;
    };
    for (const CatalogEntry& entry : entries)
        if (entry.manifest) hear(entry.key.incarnation, entry.manifest->epoch, entry.manifest->parent, entry.committed(), entry.manifest->ranks);
    for (const SealedVersion& version : sealed) hear(version.incarnation, version.epoch, version.parent, version.version != 0, 0);
    return told;
}

Status went_back_behind(const LineageRecords& records, const std::vector<CatalogEntry>& entries, const VersionKey& key, std::uint64_t epoch) {
    const std::string what = version_text(key);
    if (!records.unlisted.ok()) return doubt(records.unlisted, records.name, "whether the job went back behind " + what + " can not be told");
    Status untold;
    for (const LineageEntry& entry : records.opens) {
        if (entry.open.epoch <= epoch || (!entry.from && !entry.from_damage)) continue;
        const Told told = told_of(entry, entries, {});
        const Parent& parent = told.parent;
        if (!told.parent_told) untold = doubt(*entry.from_damage, records.name, "whether the job went back behind " + what + " can not be told");
        if (parent.incarnation == key.incarnation && parent.version < key.version)
            return Status(Code::superseded, what + ": the job went back to version " + std::to_string(parent.version) + " and on from there (epoch " +
                                                std::to_string(entry.open.epoch) + ")");
    }
    return untold;
}

}  // namespace cairn
