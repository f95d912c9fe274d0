// Python's lock, given up and taken again, also while the interpreter ends.
//
// Before 3.14, a daemon thread that asks for the lock once the interpreter ends is ended there by pthread_exit. With glibc
// this unwinds the stack as an exception does, but nobody may catch it: a destructor on the way, or a kernel's
// `catch (...)`, makes the whole process abort. So the unwinding stops where the lock is asked for, and the thread
// waits there for the end of the process, as 3.14 has it. Other systems do not unwind.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace chordal {

// Asks for the lock by take(); never returns once the interpreter ends.
template <class Take>
auto taken_or_waiting(const Take& take) noexcept {
    try {
        return take();
    } catch (...) {  // glibc's forced unwinding: it would abort if it left this handler, except by going on
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

// Without the lock, as long as it lives.
class GilReleased {
public:
    GilReleased() noexcept : state_(PyEval_SaveThread()) {}
    ~GilReleased() {
        taken_or_waiting([this] {
            PyEval_RestoreThread(state_);
            return 0;
        });
    }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

private:
    PyThreadState* state_;
};

// With the lock, as long as it lives; for code that may run without.
class GilHeld {
public:
    GilHeld() noexcept : state_(taken_or_waiting([] { return PyGILState_Ensure(); })) {}
    ~GilHeld() { PyGILState_Release(state_); }
    GilHeld(const GilHeld&) = delete;
    GilHeld& operator=(const GilHeld&) = delete;

private:
    PyGILState_STATE state_;
};

}  // namespace chordal
