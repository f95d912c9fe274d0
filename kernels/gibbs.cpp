// Gibbs sampling on cliques of any order: sweeps that draw each variable given all others.
//
//   P(y_v = l | y_{\v}) = exp(s_v(l)) / Σ_k exp(s_v(k)),   s_v as in conditionals.hpp
//
// Variables are visited in order. Each takes one uniform number from the caller, so that a seed
// decides everything. The label is the first whose cumulated share passes
// the number.
//
// Scores of -inf are counted apart: of labels that break the fewest constraints, one is drawn by
// the finite rest of its score. From a labelling that is allowed, all that follow are; from one that
// is not, sweeps repair what they can.
//
// Reference: Geman and Geman (1984), Stochastic relaxation, Gibbs distributions, and the Bayesian
// restoration of images.
#include <algorithm>
#include <cmath>
#include <limits>

#include "conditionals.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

class Sampler {
public:
    Sampler(const Cliques& g, const double* unary, const double* tables)
        : g_(g), unary_(unary), tables_(tables), members_(g) {
        std::int64_t most = 1;
        for (std::size_t v = 0; v < g.variables; ++v)
            most = std::max(most, g.labels(static_cast<std::int64_t>(v)));
        score_.resize(most);
        broken_.resize(most);
    }

    void draw(std::int64_t v, double uniform, std::int32_t* y) {
        const std::int64_t n = g_.labels(v);
        std::fill_n(score_.begin(), n, 0.0);
        std::fill_n(broken_.begin(), n, 0);
        add(unary_ + g_.state_offsets[v], 1, n);
        for (auto m = members_.begin(v); m != members_.end(v); ++m) {
            const Axis axis = axis_of(g_, *m, y);
            add(tables_ + axis.base, axis.stride, n);
        }
        const int fewest = *std::min_element(broken_.begin(), broken_.begin() + n);
        double highest = kNone, total = 0.0;
        for (std::int64_t l = 0; l < n; ++l)
            if (broken_[l] == fewest) highest = std::max(highest, score_[l]);
        for (std::int64_t l = 0; l < n; ++l)
            total += score_[l] = broken_[l] == fewest ? std::exp(score_[l] - highest) : 0.0;
        double rest = uniform * total;
        for (std::int64_t l = 0; l < n; ++l) {
            if (score_[l] == 0.0) continue;
            y[v] = static_cast<std::int32_t>(l);  // rounding may leave `rest` above the last one
            rest -= score_[l];
            if (rest < 0.0) break;
        }
    }

    std::size_t work(std::int64_t v) const {
        return static_cast<std::size_t>(g_.labels(v) * (4 + (members_.end(v) - members_.begin(v))));
    }

private:
    void add(const double* from, std::int64_t stride, std::int64_t n) {
        for (std::int64_t l = 0; l < n; ++l) {
            const double x = from[l * stride];
            if (x == kNone)
                ++broken_[l];
            else
                score_[l] += x;
        }
    }

    const Cliques& g_;
    const double* unary_;
    const double* tables_;
    Members members_;
    std::vector<double> score_;
    std::vector<int> broken_;
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // labels [chains * variables] is where the chains are; uniform [sweeps * chains * variables].
    m.def("gibbs_sweeps", [](CHORDAL_CLIQUE_ARGUMENTS, Input<double> unary, Input<double> tables,
                             Input<double> uniform, Output<std::int32_t> labels) {
        bool stopped = false;
        {
            nb::gil_scoped_release release;
            const Cliques g = CHORDAL_CLIQUES;
            Sampler sampler(g, unary.data(), tables.data());
            const std::size_t chains = g.variables ? labels.size() / g.variables : 0;
            const std::size_t sweeps = labels.size() ? uniform.size() / labels.size() : 0;
            const double* u = uniform.data();
            std::size_t work = 0;
            for (std::size_t sweep = 0; sweep < sweeps && !stopped; ++sweep)
                for (std::size_t chain = 0; chain < chains && !stopped; ++chain) {
                    std::int32_t* y = labels.data() + chain * g.variables;
                    for (std::size_t v = 0; v < g.variables && !stopped; ++v) {
                        sampler.draw(static_cast<std::int64_t>(v), *u++, y);
                        work += sampler.work(static_cast<std::int64_t>(v));
                        if (work > (std::size_t{1} << 22)) {
                            work = 0;
                            stopped = interrupted();
                        }
                    }
                }
        }
        if (stopped) throw nb::python_error();
    });
});

}  // namespace chordal
