// Quick best messages through tables of distances; see distance_tables.hpp.
#include "distance_tables.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(void distance_message(const double* f, const Distances& distances, double* n, double* spare,
                                        std::size_t labels, double highest, double shift, double* m);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {
namespace {

// x(j) or more, if a label at distance h has it.
CHORDAL_INLINE Pack step(const double* x, std::size_t h, Pack fall) {
    return maximum(load(x), maximum(load(x - h), load(x + h)) - fall);
}

// Both sides of a distance at once: rounding does not change which of two sums is larger.
template <std::size_t kReach>
CHORDAL_INLINE Pack window(const double* f, std::size_t reach, const double* n, Pack floor) {
    Pack best = maximum(load(n) + broadcast(f[0]), floor);
    for (std::size_t d = 1; d < (kReach > 0 ? kReach : reach); ++d)
        best = maximum(best, maximum(load(n - d), load(n + d)) + broadcast(f[d]));
    return best;
}

}  // namespace

void distance_message(const double* f, const Distances& distances, double* n, double* spare, std::size_t labels,
                      double highest, double shift, double* m) {
    const auto reach = static_cast<std::size_t>(distances.reach);
    const Pack floor = broadcast(highest + f[labels - 1]), down = broadcast(shift);
    const auto short_window = [&]<std::size_t kReach>() {
        for (std::size_t j = 0; j < labels; j += kLanes) store(m + j, window<kReach>(f, reach, n + j, floor) - down);
    };
    if (distances.slope == 0.0) {
        switch (reach) {
            case 1: short_window.template operator()<1>(); break;
            case 2: short_window.template operator()<2>(); break;
            case 3: short_window.template operator()<3>(); break;
            case 4: short_window.template operator()<4>(); break;
            case 5: short_window.template operator()<5>(); break;
            default: short_window.template operator()<0>();
        }
    } else {
        for (std::size_t covered = 0; covered + 1 < reach;) {
            const std::size_t left = reach - 1 - covered, h = covered + 1 < left ? covered + 1 : left;
            const Pack fall = broadcast(static_cast<double>(h) * distances.slope), top = broadcast(f[0]);
            covered += h;
            if (covered + 1 < reach) {
                for (std::size_t j = 0; j < labels; j += kLanes) store(spare + j, step(n + j, h, fall));
                double* made = spare;
                spare = n;
                n = made;
            } else {
                for (std::size_t j = 0; j < labels; j += kLanes)
                    store(m + j, maximum(step(n + j, h, fall) + top, floor) - down);
            }
        }
    }
    for (std::size_t j = labels; j < padded(labels); ++j) m[j] = -kInfinity;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <algorithm>
#include <cmath>
#include <limits>

#include "binding.hpp"
#include "max_message.hpp"

namespace chordal {
namespace {

constexpr std::int64_t kShort = 5;  // a reach up to which even tables are treated as the others
constexpr double kExact = 1e3;      // scores up to which rounding does not matter in exp f: it is below 1e-12

// f(0) - d · slope for all d < reach, but for rounding; 0 if it is not.
double slope_of(const double* f, std::int64_t reach) {
    const auto last = static_cast<double>(reach - 1);
    const double slope = (f[0] - f[reach - 1]) / last;
    const double rounding = 4.0 * std::numeric_limits<double>::epsilon() * std::max(std::abs(f[0]), std::abs(f[reach - 1]));
    if (!(slope > 0.0 && slope < std::numeric_limits<double>::infinity())) return 0.0;
    for (std::int64_t d = 1; d < reach; ++d)
        if (!(std::abs((f[0] - static_cast<double>(d) * slope) - f[d]) <= rounding)) return 0.0;
    return slope;
}

}  // namespace

Distances distances_of(const double* table, std::int64_t rows, std::int64_t columns) {
    const double* f = table;
    const std::int64_t n = columns;
    if (n < 3 || rows != n) return {};
    for (std::int64_t d = 1; d < n; ++d)
        if (f[d] > f[0] || f[d] < f[n - 1]) return {};
    for (std::int64_t i = 1; i < n; ++i) {
        const double* row = table + i * n;
        for (std::int64_t j = 0; j < i; ++j)
            if (row[j] != f[i - j]) return {};
        for (std::int64_t j = i; j < n; ++j)
            if (row[j] != f[j - i]) return {};
    }
    Distances found;
    for (found.reach = n - 1; found.reach > 1 && f[found.reach - 1] == f[n - 1];) --found.reach;
    if (found.reach > kShort) found.slope = slope_of(f, found.reach);
    if (found.slope > 0.0 && std::abs(f[0]) <= kExact && std::abs(f[found.reach - 1]) <= kExact)
        found.decay = std::exp(-found.slope);
    return found.slope > 0.0 || 2 * found.reach <= n || found.reach == 1 ? found : Distances{};
}

static const Binding binding([](nb::module_& m) {
    // table [labels, labels]; message [labels] is written if the table is of this kind, which is returned.
    m.def(
        "distance_message",
        [](Input<double> table, Input<double> scores, Output<double> message) {
            const std::size_t labels = scores.size();
            const auto columns = static_cast<std::int64_t>(labels);
            require(table.size() == labels * labels, "table must be square");
            const Distances distances = distances_of(table.data(), columns, columns);
            if (distances.reach == 0) return false;
            BestMessages messages;
            const double* made = messages.through(0, table.data(), true, scores.data(), labels, labels);
            std::copy_n(made, labels, message.data());
            return true;
        },
        nb::kw_only(), nb::arg("table"), nb::arg("scores"), nb::arg("message"));
});

}  // namespace chordal
#endif
