// The compiled module: each kernel file registers its own functions here.
#include "binding.hpp"
#include "simd.hpp"

namespace chordal {

bool use_v3() {
#if defined(CHORDAL_HAVE_V3) && (defined(__GNUC__) || defined(__clang__))
    static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                                  __builtin_cpu_supports("bmi2");
    static const bool allowed = std::getenv("CHORDAL_BASELINE") == nullptr;
    return supported && allowed;
#elif defined(CHORDAL_HAVE_V3) && defined(_MSC_VER)
    static const bool supported = msvc_has_avx2();
    return supported;
#else
    return false;
#endif
}

}  // namespace chordal

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled loops of chordal: arrays in, arrays out.";
    m.def("instruction_set", [] { return chordal::use_v3() ? "x86-64-v3" : "baseline"; },
          "The instruction set that the kernels run with on this machine.");
    chordal::bind_chain_sum(m);
    chordal::bind_chain_max(m);
    chordal::bind_chain_k_best(m);
    chordal::bind_labelling(m);
    chordal::bind_attributes(m);
    chordal::bind_vocabulary(m);
}
