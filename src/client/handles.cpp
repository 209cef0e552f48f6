#include "client/handles.hpp"

#include <pthread.h>

#include <unordered_set>

// A few bytes a session, kept for good: no two sessions of a process have the same address.
struct cairn_session {
    std::shared_ptr<cairn::Session> session;
};

namespace cairn::handles {

namespace {

struct Registry {
    std::mutex mutex;
    std::unordered_set<const cairn_session*> known;
};

// Never destroyed: applications close sessions in destructors of their own statics. A fork waits for the mutex, so that
// the child does not find it locked by a thread that it has not.
Registry& registry() {
    static Registry* const one = [] {
        ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                         [] {
                             for (const cairn_session* handle : registry().known)
                                 if (handle->session) handle->session->forked();
                             registry().mutex.unlock();
                         });
        return new Registry;
    }();
    return *one;
}

}  // namespace

cairn_session* add(std::shared_ptr<Session> session) {
    auto handle = std::make_unique<cairn_session>(cairn_session{std::move(session)});
    const std::lock_guard lock(registry().mutex);
    registry().known.insert(handle.get());
    return handle.release();
}

std::shared_ptr<Session> find(const cairn_session* handle) {
    const std::lock_guard lock(registry().mutex);
    return registry().known.count(handle) != 0 ? handle->session : nullptr;
}

std::shared_ptr<Session> close(const cairn_session* handle) {
    const std::lock_guard lock(registry().mutex);
    return registry().known.count(handle) != 0 ? std::exchange(const_cast<cairn_session*>(handle)->session, nullptr)
                                               : nullptr;
}

}  // namespace cairn::handles
