// For tests with real processes: a home for daemons, and a client of theirs that says what it is told to, sense or
// nonsense.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/door.hpp"
#include "daemon/record_testing.hpp"
#include "daemon/unreadable_testing.hpp"
#include "catalog/layout.hpp"
#include "format/control.hpp"
#include "format/image.hpp"

extern char** environ;

namespace cairn::test {

namespace fs = std::filesystem;
inline constexpr std::chrono::seconds process_patience{120};                // nothing asserts that so much time passes
inline constexpr std::uint64_t image_bytes = 200'000, slot_bytes = 1 << 20;  // of a rank, where a test does not say otherwise

template <class Condition>
bool becomes_true(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + process_patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

inline std::string read_text(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::size_t count_of(const std::string& text, const std::string& word) {
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
}

inline Descriptor connect_to(const ScratchLayout& layout) {
    Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const Descriptor room(::open(layout.root.c_str(), O_PATH | O_CLOEXEC));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string path = "/proc/self/fd/" + std::to_string(room.get()) + "/sock";
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) socket.reset(-1);
    return socket;
}

class Client {
  public:
    explicit Client(const ScratchLayout& layout) : socket_(connect_to(layout)) {}
    bool connected() const { return socket_.get() >= 0; }
    void disconnect() { socket_.reset(-1); }
    bool send(const Bytes& bytes) {
        return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
    }
    void send_request(const control::Request& request) { EXPECT_TRUE(send(encode_control(++number_, request))); }
    // The next answer; a connection that ended, or patience that did, is unavailable.
    Result<control::Answer> receive() {
        Bytes header(control_header_bytes);
        if (!read_all(header)) return unavailable("the connection ended");
        const auto head = decode_control_header(header);
        if (!head.ok()) return head.status();
        Bytes payload(head->payload_bytes);
        if (!read_all(payload)) return unavailable("the connection ended");
        return decode_control_answer(payload);
    }
    Result<control::Answer> ask(const control::Request& request) {
        send_request(request);
        return receive();
    }
    // An answer of kind A; whatever else came is a failed test and an empty A.
    template <class A>
    A expect(const control::Request& request) {
        const auto answer = ask(request);
        if (answer.ok() && std::holds_alternative<A>(*answer)) return std::get<A>(*answer);
        std::string what = answer.ok() ? "answer " + std::to_string(answer->index()) : answer.status().to_string();
        if (answer.ok() && std::holds_alternative<control::Failed>(*answer))
            what = std::get<control::Failed>(*answer).text;
        ADD_FAILURE() << "request " << request.index() << ": " << what;
        return {};
    }
    control::Welcome hello(bool is_application = false) {
        control::Hello hello;
        hello.program_version = "test";
        hello.pid = static_cast<std::uint64_t>(::getpid());
        hello.is_application = is_application;
        return expect<control::Welcome>(hello);
    }
    bool ended() {  // nothing more comes, for good
        std::byte one;
        return !wait_readable() ? false : ::recv(socket_.get(), &one, 1, 0) <= 0;
    }

  private:
    bool wait_readable() {
        pollfd wait{socket_.get(), POLLIN, 0};
        return ::poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(process_patience).count())) == 1;
    }
    bool read_all(Bytes& into) {
        std::size_t have = 0;
        while (have < into.size()) {
            if (!wait_readable()) return false;
            const ssize_t got = ::recv(socket_.get(), into.data() + have, into.size() - have, 0);
            if (got <= 0) return false;
            have += static_cast<std::size_t>(got);
        }
        return true;
    }
    Descriptor socket_;
    std::uint64_t number_ = 0;
};

// Of one process that a test knows: 0, -1 and the test's own would reach others, or end the test.
inline int send_signal(pid_t pid, int number) {
    if (pid > 1 && pid != ::getpid()) return ::kill(pid, number);
    ADD_FAILURE() << "a signal to process " << pid;
    return -1;
}

// Scratch and persistent of one node, and the daemons started there. What still runs at the end is killed.
class Home {
  public:
    Home() {
        std::string pattern = (::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path().string()) +
                              "/cairn-daemon-XXXXXX";
        EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
        scratch = pattern;
        std::string below = fs::temp_directory_path().string() + "/cairn-daemon-XXXXXX";
        EXPECT_NE(::mkdtemp(below.data()), nullptr);
        persistent = below;
        layout = ScratchLayout::of(scratch, ::geteuid(), node, persistent);
        put_on_record(roster(1));
        set("CAIRN_DAEMON_IDLE_S", "600");
        set("CAIRN_FLUSH_BUFFER_BYTES", "1 MiB");
        set("CAIRN_FLUSH_BUFFERS", "2");
        set("CAIRN_NETWORK_INTERFACE", "lo");
        set("CAIRN_DAEMON_START_WAIT_MS", "120000");
        set("CAIRN_DAEMON_RESTART", "false");  // what is killed here stays dead
    }
    Home(const Home&) = delete;
    ~Home() {
        kill_all();
        std::error_code ignored;
        fs::remove_all(scratch, ignored);
        fs::remove_all(persistent, ignored);
        fs::remove(errors_path(), ignored);
    }

    // Another node of the machine room: before its daemon is started.
    void move_to(const std::string& name, const std::string& persistent_of_all) {
        fs::remove_all(persistent);
        node = name;
        persistent = persistent_of_all;
        layout = ScratchLayout::of(scratch, ::geteuid(), node, persistent);
    }

    // Files of it may be Unreadable: its daemons give one up after a while. Before they are started.
    void expect_unreadable() { set("CAIRN_DEADLINES_IO_MS", "2000"); }
    void set(const std::string& variable, const std::string& value) { variables_[variable] = value; }

    // Starts cairnd; its stderr goes to a file.
    pid_t spawn(std::vector<std::string> arguments = {}) {
        arguments.insert(arguments.begin(),
                         {CAIRND_PROGRAM, "--node", node, "--scratch", scratch, "--persistent", persistent});
        std::vector<std::string> environment;
        for (char** each = environ; *each; ++each)
            if (std::strncmp(*each, "CAIRN_", 6) != 0) environment.push_back(*each);
        for (const auto& [variable, value] : variables_) environment.push_back(variable + "=" + value);
        std::vector<char*> argv, envp;
        for (std::string& a : arguments) argv.push_back(a.data());
        for (std::string& e : environment) envp.push_back(e.data());
        argv.push_back(nullptr);
        envp.push_back(nullptr);
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_addopen(&actions, 2, errors_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        pid_t pid = -1;
        EXPECT_EQ(::posix_spawn(&pid, CAIRND_PROGRAM, &actions, nullptr, argv.data(), envp.data()), 0);
        ::posix_spawn_file_actions_destroy(&actions);
        return pid;
    }
    static int wait_exit(pid_t pid) {
        int ended = 0;
        pid_t got = 0;
        becomes_true([&] { return (got = ::waitpid(pid, &ended, WNOHANG)) != 0; });
        return got == pid && WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    }
    int start(std::vector<std::string> arguments = {}) { return wait_exit(spawn(std::move(arguments))); }
    // In the foreground, as a child of the test, whose exit code can be waited for. Returns when it listens.
    pid_t start_here() {
        const pid_t pid = spawn({"--foreground"});
        EXPECT_TRUE(becomes_true([&] { return connect_to(layout).get() >= 0; })) << errors();
        return pid;
    }

    pid_t daemon_pid() const {
        const std::string text = read_text(layout.lock());
        return text.empty() ? 0 : static_cast<pid_t>(std::stol(text));
    }
    // Nobody holds the lock.
    bool nobody_lives() const {
        auto door = Door::open(scratch, layout);
        return door.ok() && door->lock().value_or(false);
    }
    // kill -9, and until it is over.
    void kill_daemon() {
        if (!fs::exists(layout.lock()) || nobody_lives()) return;
        const pid_t pid = daemon_pid();
        send_signal(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);  // where it is ours
        EXPECT_TRUE(becomes_true([&] { return nobody_lives(); }));
    }
    // Daemons, keepers and starters of this home, by their arguments; not the dead that nobody has asked for yet.
    std::vector<pid_t> processes() const {
        std::vector<pid_t> found;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const std::string name = entry.path().filename().string();
            if (name.find_first_not_of("0123456789") == std::string::npos &&
                read_text(entry.path().string() + "/cmdline").find(scratch + '\0') != std::string::npos)
                found.push_back(static_cast<pid_t>(std::stol(name)));
        }
        return found;
    }
    void kill_all() const {
        EXPECT_TRUE(becomes_true([&] {
            const std::vector<pid_t> left = processes();
            for (const pid_t pid : left) send_signal(pid, SIGKILL);
            for (const pid_t pid : left) ::waitpid(pid, nullptr, 0);  // where it is ours
            return left.empty();
        }));
    }
    std::string log() const { return read_text(layout.root + "/log"); }
    std::string errors_path() const { return persistent + ".errors"; }
    std::string errors() const { return read_text(errors_path()); }

    Roster roster(std::uint32_t ranks, Id128 incarnation = {1, 2}) const {
        Roster out;
        out.name = "heat";
        out.incarnation = incarnation;
        out.secret = {3, 4};
        out.epoch = 1;
        out.ranks = ranks;
        out.files = 1;
        out.members.resize(1);
        out.members[0].node = node;
        for (Rank rank = 0; rank < ranks; ++rank) out.members[0].ranks.push_back(rank);
        return out;
    }
    void put_on_record(const Roster& roster) const { cairn::put_on_record(Layout{persistent}, roster); }
    bool committed(const VersionKey& key) const { return fs::exists(Layout{persistent}.manifest(key)); }

    std::string scratch, persistent, node = "n0";
    ScratchLayout layout;

  private:
    std::map<std::string, std::string> variables_;
};

// Writes an image of `bytes` into the slot and seals it, as a client does.
inline void write_image(const control::Slot& slot, const Roster& roster, Version version, Rank rank,
                        std::uint64_t bytes) {
    ImageHeader header;
    header.key = {roster.name, version, roster.incarnation};
    header.epoch = roster.epoch;
    header.rank = rank;
    header.ranks = roster.ranks;
    header.block_bytes = 4096;
    header.image.rank = rank;
    header.image.bytes = bytes;
    header.image.regions = {{"u", RegionKind::memory, DataType::bytes, {bytes}, 0, bytes}};
    const ImageLayout layout = image_layout(encode_image_header(header).size(), header.image, header.block_bytes);
    header.checksums_offset = layout.checksums_offset;
    header.data_offset = layout.data_offset;
    const Bytes encoded = encode_image_header(header);
    ASSERT_LE(layout.file_bytes, slot.bytes);
    const int file = ::open(slot.path.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0) << slot.path;
    void* mapped = ::mmap(nullptr, slot.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    ASSERT_NE(mapped, MAP_FAILED);
    auto* base = static_cast<std::byte*>(mapped);
    EXPECT_FALSE(image_is_sealed(base));
    std::memcpy(base + image_header_offset, encoded.data(), encoded.size());
    std::memset(base + layout.data_offset, static_cast<int>(version * 16 + rank), bytes);
    image_seal(base);
    ::munmap(mapped, slot.bytes);
}

// Says who it is, a rank, and which job is its.
inline void join(Client& client, const Roster& job) {
    client.hello(true);
    client.expect<control::Done>(control::Join{job, 0, 0});
}

inline VersionKey key_of(const Roster& job, Version version) { return {job.name, version, job.incarnation}; }

struct Sizes {
    std::uint64_t image = image_bytes, slot = slot_bytes;
};

// As a rank does at a checkpoint, but for its last word: takes a slot, fills it and seals it.
inline control::Slot seal_untold(Client& client, const Roster& job, Version version, Rank rank = 0, Sizes bytes = {}) {
    auto slot = client.expect<control::Slot>(control::Acquire{key_of(job, version), rank, bytes.slot, 60'000});
    write_image(slot, job, version, rank, bytes.image);
    return slot;
}

inline control::Slot seal(Client& client, const Roster& job, Version version, Rank rank = 0, Sizes bytes = {}) {
    control::Slot slot = seal_untold(client, job, version, rank, bytes);
    client.expect<control::Done>(control::Sealed{key_of(job, version), rank, slot.path});
    return slot;
}

// How the version ended.
inline control::State await_commit(Client& client, const Roster& job, Version version) {
    return client.expect<control::State>(control::Wait{key_of(job, version), Level::committed, 60'000});
}

// The only rank of its job.
inline control::Slot commit(Client& client, const Roster& job, Version version, Sizes bytes = {}) {
    control::Slot slot = seal(client, job, version, 0, bytes);
    const control::State state = await_commit(client, job, version);
    EXPECT_EQ(state.level, Level::committed) << state.text;
    return slot;
}

}  // namespace cairn::test
