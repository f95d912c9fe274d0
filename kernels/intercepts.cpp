// Intercepts: one row of weights for all rows of scores, and its adjoint.
//
//   map      s(i, j) += w(j)           adjoint      out(j) += Σ_i p(i, j), row after row
//
// NumPy makes a call for each row of either, which a few columns do not repay. The order of the
// additions is NumPy's, and so is every bit of the result.
#include "binding.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "intercept_map",
        [](Input<double> row, Output<double> out) {
            const std::size_t n = row.size();
            require(n > 0 && out.size() % n == 0, "the scores do not fit the intercepts");
            GilReleased release;
            double* end = out.data() + out.size();
            for (double* scores = out.data(); scores != end; scores += n)
                for (std::size_t j = 0; j < n; ++j) scores[j] += row.data()[j];
        },
        nb::kw_only(), nb::arg("row"), nb::arg("out"), "Add a row to every row of a matrix.");
    m.def(
        "intercept_adjoint",
        [](Input<double> parts, Output<double> out) {
            const std::size_t n = out.size();
            require(n > 0 && parts.size() % n == 0, "the parts do not fit the intercepts");
            GilReleased release;
            std::vector<double> sum(n, 0.0);
            const double* end = parts.data() + parts.size();
            for (const double* x = parts.data(); x != end; x += n)
                for (std::size_t j = 0; j < n; ++j) sum[j] += x[j];
            for (std::size_t j = 0; j < n; ++j) out.data()[j] += sum[j];
        },
        nb::kw_only(), nb::arg("parts"), nb::arg("out"), "Add the sums over a matrix's rows.");
});

}  // namespace chordal
