// The best message along an edge, m(i) = max_j M(i, j) + b(j), by way of distances where M is a table of these.
#pragma once

#include "distance_tables.hpp"

namespace chordal {

// m [rows] from b [columns]; M [rows, columns] or, if not `child_last`, its transpose. In tree_max.cpp.
CHORDAL_BOTH_ISAS(void max_message(const double* M, bool child_last, const double* b,
                                   std::size_t columns, double* m, std::size_t rows);)

}  // namespace chordal

#ifndef CHORDAL_ISA_V3
#include <algorithm>
#include <limits>
#include <vector>

namespace chordal {

class BestMessages {
public:
    // Whether table t, which begins at M, is one of distances.
    bool by_distances(std::int64_t t, const double* M, std::size_t rows, std::size_t columns) {
        return distances_of_table(t, M, rows, columns).reach > 0;
    }
    // Through table t, which begins at M; valid until the next call.
    const double* through(std::int64_t t, const double* M, bool child_last, const double* b, std::size_t columns,
                          std::size_t rows) {
        const Distances distances = distances_of_table(t, M, rows, columns);
        if (m_.size() < std::max(rows, columns) + 3) m_.resize(std::max(rows, columns) + 3);
        if (distances.reach == 0) {
            CHORDAL_DISPATCH(max_message(M, child_last, b, columns, m_.data(), rows));
            return m_.data();
        }
        rows_.open(columns);
        const double highest = *std::max_element(b, b + columns);
        double* n = std::copy_n(b, columns, rows_.n());
        std::fill(n, rows_.n() + (columns + 3) / 4 * 4, -std::numeric_limits<double>::infinity());
        CHORDAL_DISPATCH(distance_message(M, distances, rows_.n(), rows_.spare(), columns, highest, 0.0, m_.data()));
        return m_.data();
    }

private:
    const Distances& distances_of_table(std::int64_t t, const double* M, std::size_t rows, std::size_t columns) {
        if (distances_.size() <= static_cast<std::size_t>(t))
            distances_.resize(static_cast<std::size_t>(t) + 1, Distances{-1});
        Distances& known = distances_[static_cast<std::size_t>(t)];
        if (known.reach < 0)
            known = distances_of(M, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns));
        return known;
    }

    std::vector<Distances> distances_;  // [tables]; a reach of -1: not asked for yet
    std::vector<double> m_;
    CHORDAL_ISA::DistanceRows rows_;
};

}  // namespace chordal
#endif
