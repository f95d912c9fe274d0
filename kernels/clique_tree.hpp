// A clique tree as kernels see it: clusters of variables, children first, and walks over tables.
//
// The table of cluster C has an axis for each variable, in C order: first the residual R, then the
// separator S, so that a cell is (r, s) and the cells of one s lie |S| apart. Sources (a clique's
// table, a child's message, a row of label scores) cover some of C's axes; `Axes` says how far each
// step along C moves in the source, zero where it has no such axis. Variables with one label are not
// axes of anything.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "binding.hpp"

namespace chordal {

struct CliqueTree {
    const std::int64_t* state_offsets;     // [variables + 1]
    const std::int64_t* variable_offsets;  // [examples + 1] into variables
    const std::int64_t* scope_offsets;     // [cliques + 1] into scopes
    const std::int64_t* scopes;            // variables of each clique
    const std::int64_t* table_offsets;     // [tables + 1]
    const std::int32_t* table_of_clique;   // [cliques]
    const std::int64_t* cluster_offsets;   // [examples + 1] into clusters
    const std::int64_t* member_offsets;    // [clusters + 1] into members
    const std::int64_t* members;           // variables of each cluster, residual first
    const std::int64_t* residual;          // [clusters] how many of them
    const std::int64_t* parent;            // [clusters], −1 for a root
    const std::int64_t* child_offsets;     // [clusters + 1] into children
    const std::int64_t* children;
    const std::int64_t* factor_offsets;    // [clusters + 1] into factors
    const std::int64_t* factors;           // cliques of each cluster
    std::size_t examples, variables;

    std::int64_t labels(std::int64_t v) const { return state_offsets[v + 1] - state_offsets[v]; }
    std::int64_t table(std::int64_t clique) const { return table_offsets[table_of_clique[clique]]; }
    std::int64_t residual_end(std::int64_t i) const { return member_offsets[i] + residual[i]; }
};

#define CHORDAL_CLIQUE_TREE_ARGUMENTS                                                           \
    Input<std::int64_t> state_offsets, Input<std::int64_t> variable_offsets,                    \
        Input<std::int64_t> scope_offsets, Input<std::int64_t> scopes,                          \
        Input<std::int64_t> table_offsets, Input<std::int32_t> table_of_clique,                 \
        Input<std::int64_t> cluster_offsets, Input<std::int64_t> member_offsets,                \
        Input<std::int64_t> members, Input<std::int64_t> residual, Input<std::int64_t> parent,  \
        Input<std::int64_t> child_offsets, Input<std::int64_t> children,                        \
        Input<std::int64_t> factor_offsets, Input<std::int64_t> factors, Input<double> unary,   \
        Input<double> tables
#define CHORDAL_CLIQUE_TREE_NAMES                                                               \
    nb::arg("state_offsets"), nb::arg("variable_offsets"), nb::arg("scope_offsets"),            \
        nb::arg("scopes"), nb::arg("table_offsets"), nb::arg("table_of_clique"),                \
        nb::arg("cluster_offsets"), nb::arg("member_offsets"), nb::arg("members"),              \
        nb::arg("residual"), nb::arg("parent"), nb::arg("child_offsets"), nb::arg("children"),  \
        nb::arg("factor_offsets"), nb::arg("factors"), nb::arg("unary"), nb::arg("tables")
#define CHORDAL_CLIQUE_TREE                                                                     \
    CliqueTree {                                                                                \
        state_offsets.data(), variable_offsets.data(), scope_offsets.data(), scopes.data(),     \
            table_offsets.data(), table_of_clique.data(), cluster_offsets.data(),               \
            member_offsets.data(), members.data(), residual.data(), parent.data(),              \
            child_offsets.data(), children.data(), factor_offsets.data(), factors.data(),       \
            variable_offsets.size() - 1, state_offsets.size() - 1                               \
    }

// Asks about Ctrl-C after every so many cells.
class CellPatience {
public:
    bool lost(std::int64_t cells) {
        work_ += cells + 16;
        if (work_ < (std::int64_t{1} << 23)) return false;
        work_ = 0;
        return interrupted();
    }

private:
    std::int64_t work_ = 0;
};

constexpr int kMostAxes = 64;  // of two labels or more: a table of 2^64 cells fits nowhere

// One cluster's axes.
struct Cluster {
    int axes = 0;
    std::int64_t variable[kMostAxes], size[kMostAxes];
    std::int64_t rows = 1, columns = 1;  // |R|, |S|

    Cluster(const CliqueTree& t, std::int64_t i) {
        for (auto k = t.member_offsets[i]; k < t.member_offsets[i + 1]; ++k) {
            const std::int64_t v = t.members[k], n = t.labels(v);
            (k < t.residual_end(i) ? rows : columns) *= n;
            if (n == 1) continue;
            variable[axes] = v;
            size[axes++] = n;
        }
    }
    std::int64_t cells() const { return rows * columns; }
};

// How a walk over a cluster's cells in order moves in a source; neighbouring axes that move
// alike are one.
class Axes {
public:
    // The source's variables from first to last, in C order.
    Axes(const CliqueTree& t, const Cluster& c, const std::int64_t* first, const std::int64_t* last) {
        std::int64_t step[kMostAxes];
        std::fill_n(step, c.axes, 0);
        std::int64_t stride = 1;
        for (auto v = last; v-- != first;) {
            const std::int64_t n = t.labels(*v);
            if (n == 1) continue;
            step[std::find(c.variable, c.variable + c.axes, *v) - c.variable] = stride;
            stride *= n;
        }
        for (int k = 0; k < c.axes; ++k) {
            if (count_ && step_[count_ - 1] == step[k] * c.size[k]) {
                size_[count_ - 1] *= c.size[k];
                step_[count_ - 1] = step[k];
            } else {
                size_[count_] = c.size[k];
                step_[count_++] = step[k];
            }
        }
        while (count_ < 2) {  // an axis of one in front
            size_[count_] = count_ ? size_[0] : 1;
            step_[count_] = count_ ? step_[0] : 0;
            size_[0] = 1;
            step_[0] = 0;
            ++count_;
        }
    }

    // Calls row(cell, place, n, step) for every run of n cells; the place moves by step.
    template <class Row>
    void walk(Row row) const {
        const int outer = count_ - 2;
        const std::int64_t n = size_[count_ - 1], step = step_[count_ - 1];
        const std::int64_t m = size_[count_ - 2], jump = step_[count_ - 2];
        std::int64_t digit[kMostAxes], cell = 0, place = 0;
        std::fill_n(digit, outer, 0);
        while (true) {
            for (std::int64_t j = 0; j < m; ++j, cell += n) row(cell, place + j * jump, n, step);
            int k = outer - 1;
            for (; k >= 0; --k) {
                place += step_[k];
                if (++digit[k] < size_[k]) break;
                place -= step_[k] * size_[k];
                digit[k] = 0;
            }
            if (k < 0) return;
        }
    }

    // table(cell) += source(place)
    void add(const double* source, double* table) const {
        walk([&](std::int64_t cell, std::int64_t place, std::int64_t n, std::int64_t step) {
            double* to = table + cell;
            const double* from = source + place;
            if (step == 1) {
                for (std::int64_t j = 0; j < n; ++j) to[j] += from[j];
            } else if (step == 0) {
                const double x = *from;
                for (std::int64_t j = 0; j < n; ++j) to[j] += x;
            } else {
                for (std::int64_t j = 0; j < n; ++j) to[j] += from[j * step];
            }
        });
    }

    // target(place) += scale * table(cell)
    void project(const double* table, double scale, double* target) const {
        walk([&](std::int64_t cell, std::int64_t place, std::int64_t n, std::int64_t step) {
            const double* from = table + cell;
            double* to = target + place;
            if (step == 1) {
                for (std::int64_t j = 0; j < n; ++j) to[j] += scale * from[j];
            } else if (step == 0) {
                double a = 0.0, b = 0.0;
                std::int64_t j = 0;
                for (; j + 1 < n; j += 2) a += from[j], b += from[j + 1];
                if (j < n) a += from[j];
                *to += scale * (a + b);
            } else {
                for (std::int64_t j = 0; j < n; ++j) to[j * step] += scale * from[j];
            }
        });
    }

private:
    int count_ = 0;
    std::int64_t size_[kMostAxes + 2], step_[kMostAxes + 2];
};

inline Axes factor_axes(const CliqueTree& t, const Cluster& c, std::int64_t clique) {
    return Axes(t, c, t.scopes + t.scope_offsets[clique], t.scopes + t.scope_offsets[clique + 1]);
}
inline Axes variable_axes(const CliqueTree& t, const Cluster& c, const std::int64_t* v) {
    return Axes(t, c, v, v + 1);
}
// Where the separator of a child lies in its parent's table.
inline Axes child_axes(const CliqueTree& t, const Cluster& c, std::int64_t child) {
    return Axes(t, c, t.members + t.residual_end(child), t.members + t.member_offsets[child + 1]);
}

// ψ_C: scores of the residual's labels and of the cluster's own cliques, plus its children's messages.
template <class Message>
void fill_table(const CliqueTree& t, std::int64_t i, const Cluster& c, const double* unary,
                const double* tables, Message message, double* table) {
    std::fill_n(table, c.cells(), 0.0);
    for (auto v = t.members + t.member_offsets[i]; v < t.members + t.residual_end(i); ++v)
        variable_axes(t, c, v).add(unary + t.state_offsets[*v], table);
    for (auto f = t.factor_offsets[i]; f < t.factor_offsets[i + 1]; ++f)
        factor_axes(t, c, t.factors[f]).add(tables + t.table(t.factors[f]), table);
    for (auto k = t.child_offsets[i]; k < t.child_offsets[i + 1]; ++k)
        child_axes(t, c, t.children[k]).add(message(t.children[k]), table);
}

// The column of the separator's labels.
inline std::int64_t column_of(const CliqueTree& t, std::int64_t i, const std::int32_t* y) {
    std::int64_t column = 0;
    for (auto k = t.residual_end(i); k < t.member_offsets[i + 1]; ++k)
        column = column * t.labels(t.members[k]) + y[t.members[k]];
    return column;
}

// Labels of the residual from their row.
inline void set_row(const CliqueTree& t, std::int64_t i, std::int64_t row, std::int32_t* y) {
    for (auto k = t.residual_end(i); k-- > t.member_offsets[i];) {
        const std::int64_t v = t.members[k], n = t.labels(v);
        y[v] = static_cast<std::int32_t>(row % n);
        row /= n;
    }
}

// Subtracts the largest message, which is returned: messages stay near zero however large the tree.
inline double shift(double* message, std::int64_t n) {
    const double most = *std::max_element(message, message + n);
    if (most > -std::numeric_limits<double>::infinity())
        for (std::int64_t s = 0; s < n; ++s) message[s] -= most;
    return most;
}

}  // namespace chordal
