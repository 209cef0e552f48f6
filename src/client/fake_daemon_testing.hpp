// In the place of a node's daemon: what it is asked a test answers, on a thread of its own.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "client/connection.hpp"
#include "client/files.hpp"
#include "format/control.hpp"

namespace cairn {

class FakeDaemon {
  public:
    using Answers = std::function<control::Answer(const control::Request& request)>;

    FakeDaemon(const ScratchLayout& scratch, Answers answers) : answers_(std::move(answers)) {
        std::filesystem::create_directories(scratch.root);
        listener_ = files::Descriptor(::socket(AF_UNIX, SOCK_STREAM, 0));
        sockaddr_un name{};
        name.sun_family = AF_UNIX;
        scratch.socket().copy(name.sun_path, sizeof name.sun_path - 1);
        is_there_ = ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 && ::listen(listener_.get(), 8) == 0;
        thread_ = std::thread([this] { serve(); });
    }
    ~FakeDaemon() {
        ends_ = true;
        thread_.join();
    }
    bool is_there() const { return is_there_; }

  private:
    void serve() {
        std::vector<pollfd> open = {{listener_.get(), POLLIN, 0}};
        while (!ends_) {
            ::poll(open.data(), open.size(), 10);
            for (std::size_t i = 1; i < open.size(); ++i)
                if (open[i].revents != 0 && !answer(open[i].fd)) open[i].events = 0;  // it has gone
            if (open[0].revents & POLLIN) open.push_back({::accept(listener_.get(), nullptr, nullptr), POLLIN, 0});
        }
        for (std::size_t i = 1; i < open.size(); ++i) ::close(open[i].fd);
    }
    bool answer(int socket) {
        Bytes head(control_header_bytes);
        if (!receive(socket, head)) return false;
        const auto header = decode_control_header(head);
        if (!header.ok()) return false;
        Bytes payload(header->payload_bytes);
        if (!receive(socket, payload)) return false;
        const auto request = decode_control_request(payload);
        const Bytes frame = encode_control(header->number, request.ok() ? answers_(*request) : control::Answer(control::Failed{Code::invalid_argument, "what?"}));
        return ::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size());
    }
    static bool receive(int socket, Bytes& bytes) {
        return ::recv(socket, bytes.data(), bytes.size(), MSG_WAITALL) == static_cast<ssize_t>(bytes.size());
    }

    Answers answers_;
    files::Descriptor listener_;
    bool is_there_ = false;
    std::atomic<bool> ends_ = false;
    std::thread thread_;
};

}  // namespace cairn
