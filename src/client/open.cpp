// Opening a session: settings, directories, daemon, agreement with the other ranks, and a new incarnation.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "client/hand.hpp"
#include "client/packer.hpp"
#include "client/rendezvous.hpp"
#include "client/session.hpp"
#include "catalog/io_nodes.hpp"
#include "catalog/roots.hpp"
#include "format/names.hpp"
#include "format/roster.hpp"
#include "world/real/files.hpp"
#include "world/real/world.hpp"

#ifndef CAIRN_VERSION
#define CAIRN_VERSION "unknown"
#endif

namespace cairn {

namespace {

std::string host_name() {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return name;
}

// As the daemon and the command choose it: CAIRN_NODE, else the host's name up to its first dot.
std::string node_name(const char* given) {
    if (given) return given;
    const char* variable = std::getenv("CAIRN_NODE");
    if (variable && *variable) return variable;
    const std::string host = host_name();
    return host.substr(0, host.find('.'));
}

// What of this persistent directory's checkpoints this node's scratch holds, by the path of one: then there was such a directory, and making
// it anew would hide what it held. Empty: nothing.
std::string left_in_scratch(const DaemonHome& place) {
    const ScratchLayout scratch = ScratchLayout::of(place.scratch, ::geteuid(), place.node, place.persistent);
    for (const std::string& room : {scratch.jobs(), scratch.images()}) {
        std::error_code error;
        const std::filesystem::directory_iterator entry(room, error);
        if (!error && entry != std::filesystem::directory_iterator()) return entry->path().string();
    }
    return {};
}

Status make_room(const std::string& path, Deadline deadline) {
    return files::patiently(deadline, is_away, [&]() -> Status {
        Status made = cairn::make_directory(path, 0755);
        return made.code() == Code::already_exists ? Status() : made;
    });
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const cairn_options* options, std::unique_ptr<Exchange> exchange) {
    std::unique_ptr<Session> session(new Session);
    session->pid_ = static_cast<std::uint64_t>(::getpid());
    const auto begun = Deadline::Clock::now();  // for all ranks about the same moment: what preparing takes is in it
    Status prepared = session->prepare(options, exchange.get());
    if (!prepared.ok() && !exchange) return prepared;
    const Deadline deadline = Deadline::in_ms(session->settings_.deadlines.open_ms, begun);
    TRY(session->meet(std::move(exchange), prepared, deadline));
    TRY(session->begin_incarnation({}, deadline));
    return session;
}

Status Session::prepare(const cairn_options* options, const Exchange* exchange) {
    if (!options) return invalid_argument("no options");
    if (options->struct_bytes != sizeof(cairn_options))
        return invalid_argument(
            "cairn_options has an unknown size: start from CAIRN_OPTIONS, with the headers of this library");
    if (!options->name) return invalid_argument("no name: cairn_options.name is NULL");
    name_ = options->name;
    TRY(check_name(name_).within("the name of the checkpoint"));
    ranks_ = exchange ? exchange->ranks() : options->ranks == 0 ? 1 : options->ranks;
    rank_ = exchange ? exchange->rank() : options->rank;
    if (ranks_ > ranks_max)
        return invalid_argument(std::to_string(ranks_) + " ranks; at most " + std::to_string(ranks_max));
    if (rank_ >= ranks_)
        return invalid_argument("rank " + std::to_string(rank_) + " of " + std::to_string(ranks_) +
                                ": ranks count from 0 to " + std::to_string(ranks_ - 1));
    node_ = node_name(options->node);
    TRY(check_name(node_).within("the name of the node"));
    TRY(read_settings(*options));
    if (settings_.flush.files > ranks_)
        return invalid_argument("flush.files is " + std::to_string(settings_.flush.files) + ", allowed are 1 to " +
                                std::to_string(ranks_) + " (the number of ranks), or 0 for one a node");
    if (!exchange && ranks_ > 1) {
        const char* variable = std::getenv("CAIRN_JOB");
        job_ = options->job ? options->job : variable ? variable : "";
        if (job_.empty())
            return invalid_argument(
                "several ranks without MPI need a job id that they share: cairn_options.job, or CAIRN_JOB");
        TRY(check_name(job_).within("the job id"));
    }
    return check_directories();
}

// Overrides win over the environment, which wins over the file; the daemon started for this session gets the same.
Status Session::read_settings(const cairn_options& options) {
    ConfigSources sources = ConfigSources::of_process();
    const auto set = [&](const std::string& variable, const std::string& value) {
        std::erase_if(sources.variables, [&](const auto& each) { return each.first == variable; });
        sources.variables.emplace_back(variable, value);
        place_.environment.push_back(variable + "=" + value);
    };
    for (const char* const* each = options.overrides; each && *each; ++each) {
        const std::string text(*each);
        const std::string who = "override \"" + text.substr(0, 200) + (text.size() > 200 ? "...\"" : "\"");
        const std::size_t equals = text.find('=');
        const ConfigKey* key = equals == std::string::npos ? nullptr : find_config_key(text.substr(0, equals));
        if (!key)
            return invalid_argument(who + ": no such key; `cairn config` lists all, the form is section.key=value");
        const auto value = key->parse(text.substr(equals + 1));
        const Status fits = value.ok() ? key->check(*value) : value.status();
        if (!fits.ok()) return Status(fits.code(), who + ": " + fits.text() + "; allowed: " + key->allowed());
        set(key->variable(), text.substr(equals + 1));
    }
    if (options.config_file) {
        set("CAIRN_CONFIG", options.config_file);
        sources.file_named_by = "cairn_options.config_file";
    }
    TRY_ASSIGN(const Config config, load_config(sources));
    settings_ = config.settings;
    if (!config.file.empty()) set("CAIRN_CONFIG", config.file);
    layout_ = {settings_.paths.persistent, roots_besides(settings_.paths.persistent, storage_directories(settings_))};
    place_.scratch = settings_.paths.scratch;
    place_.persistent = settings_.paths.persistent;
    place_.node = node_;
    place_.program = settings_.daemon.program;
    return {};
}

Status Session::check_directories() {
    // The other ranks wait in open meanwhile, and are to be told in time.
    const Deadline deadline = Deadline::in_ms(settings_.deadlines.open_ms / 2);
    TRY(files::usable_directory(settings_.paths.scratch, "scratch", {}, deadline));
    TRY(files::usable_directory(settings_.paths.persistent, "persistent", left_in_scratch(place_), deadline));
    if (files::same_file_system(settings_.paths.scratch, settings_.paths.persistent))
        warnings_ +=
            "scratch " + settings_.paths.scratch + " and persistent " + settings_.paths.persistent +
            " are on the same file system: checkpoints die with it (settings paths.scratch, paths.persistent)\n";
    return {};
}

// Rank 0 alone: below which directories the job's files shall lie. Where no file could be made below any of them no version could be committed, and the job hears it now. One of several gets
// no files before it can be used, and one that is full, does not answer or fails for the moment may come back: a warning. A session that is open goes on whatever
// becomes of them.
Status Session::check_roots() {
    const std::vector<std::string> roots = storage_directories(settings_);
    if (roots.empty()) return {};
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
    World world = real->world();
    const Nanos until = world.clock.in(static_cast<Nanos>(settings_.deadlines.open_ms / 4) * millisecond);
    const std::vector<Status> tried = real->loop().run(try_roots(world, roots, until));
    if (std::none_of(tried.begin(), tried.end(), [](const Status& each) { return each.ok() || may_pass(each); }))
        return unavailable("none of the " + std::to_string(roots.size()) + " directories that setting storage.directories names can be used, and no version could be committed; the first: " +
                           tried.front().text() + "; make them, or mount their file systems, so that this user may write there");
    for (std::size_t i = 0; i < roots.size(); ++i)
        if (!tried[i].ok()) warnings_ += tried[i].within("storage.directories names " + roots[i] + ", which gets no files before it can be used").text() + "\n";
    return {};
}

Status Session::connect(Deadline deadline) {
    daemon_ = std::make_unique<DaemonLink>(place_, true, settings_.daemon.start_wait_ms);
    return daemon_->ensure(deadline);
}

Status Session::meet(std::unique_ptr<Exchange> exchange, const Status& prepared, Deadline deadline) {
    if (!exchange && ranks_ == 1) exchange = std::make_unique<SelfExchange>();
    if (!exchange) {
        for (const std::string& room : {layout_.jobs(), layout_.meetings()}) TRY(make_room(room, deadline));
        TRY_ASSIGN(exchange, FileExchange::meet(layout_.meeting(job_), rank_, ranks_, deadline));
    }
    exchange_ = std::move(exchange);
    Hand hand;
    hand.library = CAIRN_VERSION;
    hand.prepared = prepared;
    if (hand.prepared.ok() && rank_ == 0) hand.prepared = check_roots();  // the others are here, and are told
    if (hand.prepared.ok()) hand.prepared = connect(deadline);
    hand.name = name_;
    hand.persistent = layout_.persistent;
    hand.node = node_;
    if (hand.prepared.ok()) {
        hand.address = daemon_->welcome().address;
        hand.daemon = daemon_->welcome().program_version;
        hand.daemon_format = daemon_->welcome().format;
    }
    hand.files = settings_.flush.files;
    hand.layout = static_cast<FileLayout>(settings_.flush.layout);  // the same in the same order
    hand.block_bytes = settings_.flush.block_bytes;
    hand.is_through = settings_.capture.mode == Settings::CaptureMode::through;
    if (hand.prepared.ok()) hand.epoch = scratch_epoch(deadline);
    TRY_ASSIGN(const std::vector<Bytes> hands, exchange_->allgather(hand.pack(), deadline));
    TRY_ASSIGN(HandsTogether together, compare_hands(hands));
    adopt(std::move(together));
    return {};
}

// A series can be removed while scratch still has images of it. 0: none, or it can not be told now, and then the clock has to do.
std::uint64_t Session::scratch_epoch(Deadline deadline) {
    const auto list = daemon_->ask_for<control::ImageList>(control::Images{name_}, deadline.early());
    static_cast<void>(daemon_->ask_for<control::Done>(control::Unpin{}, deadline.early()));
    std::uint64_t highest = 0;
    if (list.ok())
        for (const auto& image : list->images) highest = std::max(highest, image.epoch);
    return highest;
}

// What rank 0 says goes for all.
void Session::adopt(HandsTogether hands) {
    members_ = std::move(hands.members);
    known_epoch_ = hands.epoch;
    block_bytes_ = hands.block_bytes;
    is_through_ = hands.is_through;
    // One a node unless asked for; a node has at least one rank, so this is within 1..ranks.
    layout_of_files_ = hands.layout;
    files_ = hands.files != 0 ? hands.files : hands.layout == FileLayout::ranks ? ranks_ : static_cast<std::uint32_t>(members_.size());
}

// A short-lived one, for the engine's reading and for records: its threads end with it.
Result<std::unique_ptr<RealWorld>> Session::open_world() const {
    RealWorldOptions options;
    options.storage.backend = settings_.flush.io == Settings::Io::uring     ? IoBackend::uring
                              : settings_.flush.io == Settings::Io::threads ? IoBackend::threads
                                                                            : IoBackend::automatic;
    return RealWorld::create(options);
}

// Rank 0 alone.
Result<Roster> Session::draw_incarnation(const std::vector<Member>& members, const Parent& parent, Deadline deadline) {
    Roster roster;
    roster.name = name_;
    roster.parent = parent;
    roster.ranks = ranks_;
    roster.files = files_;
    roster.layout = layout_of_files_;
    roster.members = members;
    roster.format = format_version;  // compare_hands: all know it
    roster.roots = storage_directories(settings_);
    TRY_ASSIGN(roster.incarnation, files::random_id());
    TRY_ASSIGN(roster.secret, files::random_id());
    OpenRecord record;
    record.incarnation = roster.incarnation;
    record.host = host_name();
    record.pid = pid_;
    record.wall_time_s = static_cast<std::uint64_t>(std::time(nullptr));
    record.ranks = ranks_;
    TRY_ASSIGN(const std::unique_ptr<RealWorld> real, open_world());
    World world = real->world();
    const Nanos until = real->loop().now() + static_cast<Nanos>(deadline.left_ms()) * millisecond;
    TRY_ASSIGN(roster.epoch, real->loop().run(claim_epoch(world, layout_, name_, record, std::max(known_epoch_, roster_.epoch), until)));
    if (parent.incarnation) {
        TRY(real->loop().run(record_parent(world, layout_, name_, roster.epoch, from_record(roster.incarnation, parent), until)));
    }
    add_io_nodes(roster, *real, world, until);
    TRY(check_roster(roster));
    return roster;
}

// Members without ranks, behind all others. One that is missing costs time, not versions: it is a warning, never an error.
void Session::add_io_nodes(Roster& roster, RealWorld& real, World& world, Nanos until) {
    const std::string& wanted = settings_.flush.io_nodes;
    if (wanted == "none") return;
    const auto found = real.loop().run(list_io_nodes(world, layout_, until));
    if (!found.ok()) {
        const std::lock_guard lock(state_);
        warnings_ += found.status().within("looking for I/O nodes (setting flush.io_nodes)").text() + "\n";
        return;
    }
    const std::lock_guard lock(state_);
    for (const Status& problem : found->problems) warnings_ += problem.text() + "\n";
    const std::vector<std::string> names = wanted == "all" ? std::vector<std::string>() : parse_list(wanted).value_or({});
    for (const std::string& name : names)
        if (std::none_of(found->records.begin(), found->records.end(), [&](const auto& record) { return record.node == name; }))
            warnings_ += "flush.io_nodes names " + name + ", which is not an I/O node of " + layout_.persistent +
                         ": `cairn start --io-node` there, before the job\n";
    if (wanted == "all" && found->records.empty())
        warnings_ += "flush.io_nodes is all, and " + layout_.persistent + " has no I/O node: `cairn start --io-node` on some, before the job\n";
    for (const IoNodeRecord& record : found->records) {
        const bool asked_for = wanted == "all" || std::find(names.begin(), names.end(), record.node) != names.end();
        const bool has_ranks = std::any_of(roster.members.begin(), roster.members.end(), [&](const Member& member) { return member.node == record.node; });
        if (!asked_for || has_ranks) continue;
        if (record.format == roster.format) roster.members.push_back({record.node, record.address, {}});
        else warnings_ += older_member("I/O node " + record.node + " is left out: it runs a cairnd", record.format, roster.format) +
                          " and start it anew (`cairn stop`, `cairn start --io-node`)\n";
    }
}

Status Session::begin_incarnation(const Parent& parent, Deadline deadline) {
    Packer packer;
    if (rank_ == 0) {
        Roster roster;
        const Deadline early = deadline.early();
        // A new one each time: what a try that failed has published counts as a job that ended at once.
        const Status drawn = files::patiently(early, is_away, [&]() -> Status {
            TRY_ASSIGN(roster, draw_incarnation(members_, parent, early));
            return {};
        });
        packer.status(drawn.code() == Code::out_of_space ? drawn.within("`cairn rm` and `cairn gc` make room under persistent, and need none") : drawn);
        if (drawn.ok()) packer.run(encode_roster(roster));
    }
    TRY_ASSIGN(const Bytes said, exchange_->broadcast(packer.take(), deadline));
    Unpacker unpacker(said);
    Status status = unpacker.status();
    if (!status.ok()) return ranks_ == 1 ? status : status.within("rank 0");
    const ByteView encoded = unpacker.run();
    auto roster = decode_roster(encoded);
    Status joined = roster.status();
    if (!joined.ok()) return exchange_->agree(joined, deadline);
    joined = join(*roster, deadline);
    return take_over(*roster, joined, deadline);
}

control::Join Session::join_of(const Roster& roster) const {
    control::Join join;
    join.roster = roster;
    join.rank = rank_;
    for (std::size_t i = 0; i < roster.members.size(); ++i)
        if (roster.members[i].node == node_) join.self = static_cast<NodeIndex>(i);
    return join;
}

// Tells the daemon. The session goes on as it was until all ranks have done so: take_over.
Status Session::join(const Roster& roster, Deadline deadline) {
    const control::Join join = join_of(roster);
    daemon_->say_first(join);
    // The daemon writes down where it is found, on persistent.
    return files::patiently(deadline.early(), is_away,
                            [&] { return daemon_->ask_for<control::Done>(join, deadline).status(); });
}

// All ranks are in this incarnation from now on, or none is.
Status Session::take_over(const Roster& roster, const Status& joined, Deadline deadline) {
    const Status agreed = exchange_->agree(joined, deadline);
    if (!agreed.ok()) {
        if (roster_.incarnation) daemon_->say_first(join_of(roster_));
        return agreed;
    }
    exchange_->serves(roster.incarnation);
    const std::lock_guard lock(state_);
    roster_ = roster;
    took_any_ = false;
    last_version_ = roster.parent.version;
    if (roster.parent.incarnation) taken_[roster.parent.version] = {roster.parent.incarnation};
    return {};
}

}  // namespace cairn
