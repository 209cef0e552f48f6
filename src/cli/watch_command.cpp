#include "cli/watch_command.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "client/files.hpp"

namespace cairn::cli {

// The new process tells by a pipe that closes itself when the command begins why it does not begin.
Status WatchedCommand::start(const std::vector<std::string>& words, bool to_error) {
    name_ = words.front();
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno(errno, "can not start " + name_);
    const files::Descriptor told(ends[0]);
    files::Descriptor tells(ends[1]);
    process_ = ::fork();
    if (process_ < 0) return Status::from_errno(errno, "can not start " + name_);
    if (process_ == 0) {
        for (const int signal : {SIGTERM, SIGINT, SIGPIPE, SIGIO, SIGCHLD}) ::signal(signal, SIG_DFL);
        if (to_error) ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::execvp(argv[0], argv.data());
        const int error = errno;
        static_cast<void>(!::write(tells.get(), &error, sizeof error));
        ::_exit(127);
    }
    tells = files::Descriptor();
    int error = 0;
    while (::read(told.get(), &error, sizeof error) < 0 && errno == EINTR) {
    }
    if (error == 0) return {};
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
    return Status::from_errno(error, "can not start " + name_);
}

bool WatchedCommand::has_ended() {
    int status = 0;
    if (process_ <= 0 || ::waitpid(process_, &status, WNOHANG) != process_) return false;
    process_ = 0;
    if (WIFSIGNALED(status))
        outcome_ = Status(Code::io_error, name_ + " was ended by signal " + std::to_string(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        outcome_ = Status(Code::io_error, name_ + " ended with exit code " + std::to_string(WEXITSTATUS(status)));
    return true;
}

void WatchedCommand::pass_on(int signal) const {
    if (process_ > 0) ::kill(process_, signal);
}

}  // namespace cairn::cli
