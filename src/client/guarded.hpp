// Guarded: exceptions become statuses where they must not go on. Two such places: functions that the application gave us, whose exceptions
// would leave the other ranks in a collective call that this one never makes; and the C interface, which nothing may unwind through.
//
// A thread that is being cancelled (pthread_cancel, pthread_exit in a callback) unwinds by an exception of its own, which must not end here:
// the C library ends the process then.
#pragma once

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>

#include "base/status.hpp"

namespace cairn {

// What `call` returns, a Status or a Result; or, when it threw, `otherwise(text of the exception, code that fits)`.
template <class Call, class Otherwise>
auto guarded(Call&& call, Otherwise&& otherwise) -> decltype(call()) {
    try {
        return call();
    } catch (abi::__forced_unwind&) {
        throw;
    } catch (const std::bad_alloc&) {
        return otherwise("not enough memory", Code::out_of_space);
    } catch (const std::exception& error) {
        return otherwise(error.what(), Code::internal);
    } catch (...) {
        return otherwise("an exception that is no std::exception", Code::internal);
    }
}

// Of our own code: an exception there is a defect, or memory that is not to be had.
template <class Call>
auto guarded(Call&& call) -> decltype(call()) {
    return guarded(call, [](const char* text, Code code) {
        return Status(code, code == Code::internal ? std::string("unexpected exception: ") + text : std::string(text));
    });
}

// One of the application's functions: `callback` calls it, `who` names it for the reader ("region "u": its size callback"). Other than 0 is a
// refusal, as an exception is: cancelled, the application's word.
template <class Callback>
Status call_application(const std::string& who, Callback&& callback) {
    return guarded(
        [&]() -> Status {
            const int code = callback();
            return code == 0 ? Status() : Status(Code::cancelled, who + " refused with " + std::to_string(code));
        },
        [&](const char* text, Code) { return Status(Code::cancelled, who + " threw: " + text); });
}

}  // namespace cairn
