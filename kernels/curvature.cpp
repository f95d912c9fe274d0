// The long vectors of L-BFGS, a block of weights at a time.
//
//   step s = w' − w, change y = g' − g of the newest pair; products of every s and y with g'
//   direction d = c_0 s_0 + c_1 y_0 + c_2 s_1 + … − h g'
//
// Pairs are float32 rows, s and y in turn: half the memory, which is what decides the time. Sums
// run in float64 over pieces that fit in the first cache, always in the same order, so that blocks
// can be shared among threads without a change in any digit.
#include "simd.hpp"

namespace chordal {

struct PairRows {
    float* data;  // [rows, n]
    std::size_t rows, n;
};

// Sums that come with a new pair, after its rows' products.
enum PairSums { kStepSquare, kChangeSquare, kCurvature, kPairSums };

CHORDAL_BOTH_ISAS(void curvature_pair(const double* weights, const double* old_weights,
                                      const double* gradient, const double* old_gradient,
                                      const PairRows&, std::size_t row, std::size_t begin,
                                      std::size_t end, double* out);
                  double curvature_direction(const double* coefficients, double scale,
                                             const PairRows&, const double* gradient,
                                             std::size_t begin, std::size_t end, double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kPiece = 1024;
constexpr std::size_t kChains = 4;  // sums that go on at once

CHORDAL_INLINE double product(const float* a, const double* b, std::size_t n) {
    Pack sum[kChains];
    CHORDAL_UNROLL
    for (std::size_t c = 0; c < kChains; ++c) sum[c] = broadcast(0.0);
    std::size_t i = 0;
    for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
        CHORDAL_UNROLL
        for (std::size_t c = 0; c < kChains; ++c)
            sum[c] = load(a + i + c * kLanes) * load(b + i + c * kLanes) + sum[c];
    }
    double total = lane_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; i < n; ++i) total += static_cast<double>(a[i]) * b[i];
    return total;
}

// difference = a − b; returns its square.
CHORDAL_INLINE double subtract(const double* a, const double* b, std::size_t n, double* difference,
                               float* rounded) {
    Pack sum = broadcast(0.0);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        const Pack d = load(a + i) - load(b + i);
        sum = d * d + sum;
        store(difference + i, d);
        store(rounded + i, d);
    }
    double total = lane_sum(sum);
    for (; i < n; ++i) {
        difference[i] = a[i] - b[i];
        rounded[i] = static_cast<float>(difference[i]);
        total += difference[i] * difference[i];
    }
    return total;
}

CHORDAL_INLINE double inner(const double* a, const double* b, std::size_t n) {
    Pack sum = broadcast(0.0);
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) sum = load(a + i) * load(b + i) + sum;
    double total = lane_sum(sum);
    for (; i < n; ++i) total += a[i] * b[i];
    return total;
}

void curvature_pair(const double* weights, const double* old_weights, const double* gradient,
                    const double* old_gradient, const PairRows& pairs, std::size_t row,
                    std::size_t begin, std::size_t end, double* out) {
    Scratch s(kPiece), y(kPiece);
    for (std::size_t k = 0; k < pairs.rows + kPairSums; ++k) out[k] = 0.0;
    double* sums = out + pairs.rows;
    for (std::size_t at = begin; at < end; at += kPiece) {
        const std::size_t n = end - at < kPiece ? end - at : kPiece;
        float* newest = pairs.data + row * pairs.n + at;
        sums[kStepSquare] += subtract(weights + at, old_weights + at, n, s.data(), newest);
        sums[kChangeSquare] +=
            subtract(gradient + at, old_gradient + at, n, y.data(), newest + pairs.n);
        sums[kCurvature] += inner(s.data(), y.data(), n);
        for (std::size_t k = 0; k < pairs.rows; ++k)
            out[k] += product(pairs.data + k * pairs.n + at, gradient + at, n);
    }
}

double curvature_direction(const double* coefficients, double scale, const PairRows& pairs,
                           const double* gradient, std::size_t begin, std::size_t end,
                           double* out) {
    double slope = 0.0;
    for (std::size_t at = begin; at < end; at += kPiece) {
        const std::size_t n = end - at < kPiece ? end - at : kPiece;
        double* d = out + at;
        const double* g = gradient + at;
        for (std::size_t i = 0; i < n; ++i) d[i] = -scale * g[i];
        for (std::size_t k = 0; k < pairs.rows; ++k) {
            if (coefficients[k] == 0.0) continue;
            const float* row = pairs.data + k * pairs.n + at;
            const Pack c = broadcast(coefficients[k]);
            std::size_t i = 0;
            for (; i + kLanes <= n; i += kLanes) store(d + i, c * load(row + i) + load(d + i));
            for (; i < n; ++i) d[i] += coefficients[k] * static_cast<double>(row[i]);
        }
        slope += inner(d, g, n);
    }
    return slope;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include "binding.hpp"

namespace chordal {

namespace {

// In Python: CurvatureStep.
struct CurvatureStep {
    Input<double> weights, old_weights, gradient, old_gradient;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<CurvatureStep>(m, "CurvatureStep", "Where a step began and ended, and its gradients.")
        .def("__init__",
             [](CurvatureStep* self, Input<double> weights, Input<double> old_weights,
                Input<double> gradient, Input<double> old_gradient) {
                 new (self) CurvatureStep{weights, old_weights, gradient, old_gradient};
             },
             nb::kw_only(), nb::arg("weights"), nb::arg("old_weights"), nb::arg("gradient"),
             nb::arg("old_gradient"));
    m.def(
        "curvature_pair",
        [](const CurvatureStep& step, Output<float> pairs, std::size_t row, std::size_t begin,
           std::size_t end, Output<double> out) {
            GilReleased release;
            const std::size_t n = step.weights.size();
            const PairRows rows{pairs.data(), pairs.size() / n, n};
            CHORDAL_DISPATCH(curvature_pair(step.weights.data(), step.old_weights.data(),
                                            step.gradient.data(), step.old_gradient.data(), rows,
                                            row, begin, end, out.data()));
        },
        nb::arg("step"), nb::arg("pairs"), nb::arg("row"), nb::arg("begin"), nb::arg("end"),
        nb::arg("out"));
    m.def(
        "curvature_direction",
        [](Output<float> pairs, double scale, std::size_t begin, std::size_t end,
           Input<double> coefficients, Input<double> gradient, Output<double> out) {
            GilReleased release;
            const PairRows rows{pairs.data(), coefficients.size(), gradient.size()};
            return CHORDAL_DISPATCH(curvature_direction(coefficients.data(), scale, rows,
                                                        gradient.data(), begin, end, out.data()));
        },
        nb::arg("pairs"), nb::arg("scale"), nb::arg("begin"), nb::arg("end"), nb::kw_only(),
        nb::arg("coefficients"), nb::arg("gradient"), nb::arg("out"));
});

}  // namespace chordal
#endif
