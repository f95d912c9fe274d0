// The compiled module: what the kernel files have announced.
#include <atomic>
#include <chrono>
#include <limits>

#include "binding.hpp"
#include "patience.hpp"
#include "simd.hpp"

#if defined(CHORDAL_HAVE_V3) && defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace chordal {
namespace {

// In Python: TimeLimitError.
struct OutOfTime : std::runtime_error {
    using std::runtime_error::runtime_error;
};

#if defined(CHORDAL_HAVE_V3) && defined(_MSC_VER)
// FMA and OSXSAVE are bits 12 and 27 of leaf 1's ECX, AVX2 is bit 5 of leaf 7's EBX; the system
// must save the wide registers too (XCR0 bits 1 and 2).
bool processor_has_v3() {
    int leaf[4];
    __cpuid(leaf, 0);
    if (leaf[0] < 7) return false;
    __cpuid(leaf, 1);
    const int needed = (1 << 12) | (1 << 27);
    if ((leaf[2] & needed) != needed || (_xgetbv(0) & 6) != 6) return false;
    __cpuidex(leaf, 7, 0);
    return (leaf[1] & (1 << 5)) != 0;
}
#elif defined(CHORDAL_HAVE_V3)
bool processor_has_v3() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}
#else
bool processor_has_v3() { return false; }
#endif

// What a thread looks at while kernels run.
struct StopFlag {
    std::atomic<bool> raised{false};
};
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kBetweenSignals = 0.02;
struct Attention {
    double asked = -kNever;         // when signals were last looked at
    double deadline = kNever;       // by `clock_seconds`
    const StopFlag* stop = nullptr;  // of the thread that waits for this one
    bool late = false;
};
thread_local Attention attention;

double clock_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void bind_limits(nb::module_& m) {
    m.def("clock", clock_seconds, "Seconds, as deadlines have them.");
    m.def("deadline", [] { return attention.deadline; },
          "When kernels of this thread raise TimeLimitError, or return what they have; inf: never.");
    m.def("set_deadline", [](double seconds) { attention.deadline = seconds; }, nb::arg("seconds"));
    nb::class_<StopFlag>(m, "StopFlag", "How one thread ends the kernels of others.")
        .def(nb::init<>())
        .def("set", [](StopFlag& self) { self.raised.store(true); },
             "Kernels of threads that attend to it raise KeyboardInterrupt.");
    m.def("attend", [](const StopFlag* flag) { attention.stop = flag; }, nb::arg("flag").none(),
          "From now on, kernels of this thread look at the flag, which the caller keeps alive.");
}

// In a function: the files' static objects may come to life before this file's.
std::vector<void (*)(nb::module_&)>& bindings() {
    static std::vector<void (*)(nb::module_&)> all;
    return all;
}

}  // namespace

Binding::Binding(void (*bind)(nb::module_&), bool first) {
    bindings().insert(first ? bindings().begin() : bindings().end(), bind);
}

bool interrupted() {
    const double now = clock_seconds();
    attention.late = false;
    if (now - attention.asked >= kBetweenSignals) {
        attention.asked = now;
        // Helpers have no state of Python's, and could not hear signals: whom they help does.
        if (PyGILState_GetThisThreadState()) {
            const GilHeld gil;
            if (PyErr_CheckSignals() != 0) return true;
        }
    }
    if (attention.stop && attention.stop->raised.load(std::memory_order_relaxed)) {
        const GilHeld gil;
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return true;
    }
    return attention.late = now >= attention.deadline;
}

bool out_of_time() { return attention.late; }

void listen(std::size_t work) {
    constexpr std::size_t kEvery = std::size_t{1} << 18;
    thread_local std::size_t done = 0;
    done += work;
    if (done < kEvery) return;
    done = 0;
    if (interrupted() && !out_of_time()) throw Stopped{};
}

Grace::Grace() : deadline_(attention.deadline) { attention.deadline = kNever; }
Grace::~Grace() { attention.deadline = deadline_; }

bool use_v3() {
    static const bool use = processor_has_v3() && std::getenv("CHORDAL_BASELINE") == nullptr;
    return use;
}

}  // namespace chordal

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled loops of chordal: arrays in, arrays out.";
    nanobind::set_leak_warnings(false);  // what a session still holds at its end is no leak
    m.def("instruction_set", [] { return chordal::use_v3() ? "x86-64-v3" : "baseline"; },
          "The instruction set that the kernels run with on this machine.");
    static nanobind::handle time_limit_error =
        nanobind::exception<chordal::OutOfTime>(m, "TimeLimitError", PyExc_TimeoutError);
    nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const chordal::Stopped&) {
            if (!PyErr_Occurred()) PyErr_SetString(time_limit_error.ptr(), "the time limit is over");
        }
    });
    m.def(
        "refuse_other_interpreters",
        [] {
            if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
                throw nanobind::import_error(
                    "chordal works in the main interpreter only, not in sub-interpreters; use threads or processes");
        },
        "ImportError in a sub-interpreter, where bound objects would be shared and locks never released.");
    chordal::bind_limits(m);
    for (const auto bind : chordal::bindings()) bind(m);
}
