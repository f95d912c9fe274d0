// The compiled module: what the kernel files have announced.
#include <chrono>

#include "binding.hpp"
#include "patience.hpp"
#include "simd.hpp"

#if defined(CHORDAL_HAVE_V3) && defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace chordal {
namespace {

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
    using Clock = std::chrono::steady_clock;
    thread_local Clock::time_point asked{};
    const Clock::time_point now = Clock::now();
    if (now - asked < std::chrono::milliseconds(20)) return false;
    asked = now;
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

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
    nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const chordal::Stopped&) {  // Python's error is set
        }
    });
    for (const auto bind : chordal::bindings()) bind(m);
}
