// Sums over the rows of a matrix: out(j) += Σ_i x(i, j), row after row.
//
// NumPy's reduction over the first axis takes a call per row, which a few columns do not repay. The
// order of the additions is the same, and so is every bit of the result.
#include "binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "column_sums",
        [](Input<double> values, Output<double> out) {
            const std::size_t n = out.size();
            require(n > 0 && values.size() % n == 0, "the values do not fit the sums");
            nb::gil_scoped_release release;
            const double* x = values.data();
            const double* end = x + values.size();
            std::vector<double> sum(n, 0.0);
            for (; x != end; x += n)
                for (std::size_t j = 0; j < n; ++j) sum[j] += x[j];
            for (std::size_t j = 0; j < n; ++j) out.data()[j] += sum[j];
        },
        nb::kw_only(), nb::arg("values"), nb::arg("out"), "Add the sums over the rows of a matrix to out.");
});

}  // namespace chordal
