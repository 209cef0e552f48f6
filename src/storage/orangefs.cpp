#include "storage/orangefs.hpp"

#include <algorithm>
#include <mutex>
#include <sstream>

namespace cairn {

namespace {

constexpr std::string_view attribute_prefix = "user.pvfs2.";
constexpr int layout_list = 4;  // PVFS_SYS_LAYOUT_LIST

std::string five_digits(std::size_t number) {
    const std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

class OrangeFs final : public ParallelFileSystem {
  public:
    std::string_view name() const override { return "orangefs"; }

    Result<PlacementTargets> targets(Outside&, const std::string&, const std::vector<std::string>& wanted) const override {
        PlacementTargets targets{"orangefs", wanted, {}, "orangefs"};
        targets.unasked = {1, 0};  // whole on a server, whichever it is
        targets.spans = true;
        targets.warning = warning();
        return targets;
    }

    Status make(Outside& outside, const std::string& path, std::uint32_t permissions, const Placing& placing, Nanos limit) const override {
        const std::string directory = path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
        {
            const std::lock_guard lock(directory_);
            for (const auto& [name, value] : orangefs_attributes(placing)) TRY(outside.set_attribute(directory, name, value));
            TRY(outside.make_file(path, permissions));
        }
        if (placing.targets.empty()) return {};
        const Result<std::string> printed = outside.run({"pvfs2-viewdist", "-f", path}, limit);
        const std::vector<std::string> servers = printed.ok() ? servers_of_viewdist(*printed) : std::vector<std::string>();
        if (servers.empty() || servers == placing.targets) return {};
        return unavailable(path + " lies on " + names_text(servers) + ", not on " + names_text(placing.targets) + ": another node set the attributes of its directory at the same time");
    }

    std::vector<std::string> lies_on(Outside& outside, const std::string& path) const override {
        const Result<std::string> printed = outside.run({"pvfs2-viewdist", "-f", path}, looking_limit);
        return printed.ok() ? servers_of_viewdist(*printed) : std::vector<std::string>();
    }

    std::string how() const override {
        return "the directory of a version gets user.pvfs2.num_dfiles = 1, so that a file lies whole on one server; placement.targets can name servers for user.pvfs2.server_list";
    }
    std::string warning() const override {
        return "durability is not promised on OrangeFS: fsync does nothing through FUSE, and a full server says nothing of it; a version that is committed there may be lost with a server. cairn verify reads it back";
    }

  private:
    mutable std::mutex directory_;  // whose attributes hold for whatever is made next in it
};

}  // namespace

std::vector<std::pair<std::string, std::string>> orangefs_attributes(const Placing& placing) {
    std::vector<std::pair<std::string, std::string>> attributes;
    const auto set = [&attributes](const char* name, std::string value) { attributes.emplace_back(std::string(attribute_prefix) + name, std::move(value)); };
    const auto text = [](std::string value) { return std::move(value) + '\0'; };
    const std::size_t servers = placing.targets.empty() ? std::max<std::size_t>(1, placing.stripes) : placing.targets.size();
    if (servers > 1) set("dist_name", text("simple_stripe"));
    if (servers > 1 && placing.stripe_bytes != 0) set("dist_params", text("strip_size:" + std::to_string(placing.stripe_bytes)));
    if (!placing.targets.empty()) {
        set("layout", text(five_digits(layout_list)));
        std::string list = five_digits(placing.targets.size());
        for (const std::string& server : placing.targets) list += " " + server;
        set("server_list", std::move(list));
    }
    set("num_dfiles", text(five_digits(servers)));
    return attributes;
}

std::vector<std::string> servers_of_viewdist(std::string_view printed) {
    std::vector<std::string> servers;
    std::istringstream lines{std::string(printed)};
    for (std::string line; std::getline(lines, line);) {
        // "Datafile 0 - tcp://io1:3334, handle: ...", before 2.9 "Server 0 - ..."
        std::istringstream words(line);
        std::string kind, number, dash, server;
        if (!(words >> kind >> number >> dash >> server) || (kind != "Datafile" && kind != "Server") || dash != "-") continue;
        if (server.ends_with(',')) server.pop_back();
        servers.push_back(server);
    }
    return servers;
}

const ParallelFileSystem& orangefs() {
    static const OrangeFs one;
    return one;
}

}  // namespace cairn
