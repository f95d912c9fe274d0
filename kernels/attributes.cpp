// Sparse features: rows hold attributes, an attribute has weights for some outputs.
//
//   map      s_t(k) = Σ_{a in row t} x_ta w(a, k)          adjoint   g(a, k) = Σ_t x_ta p_t(k)
//
// Attributes come in two kinds. A *wide* one has a row of weights for outputs 0 .. n-1 (zeros where
// a pair has no weight), n a multiple of a unit of doubles, and is added as a vector; with frequent
// outputs numbered first, most rows are short. Its entry is offset << 5 | n, both in units, and a
// row's entries are sorted, longest first. A *narrow* attribute has weights for a few outputs only;
// each of its pairs is one entry (cell = t K + k, weight index).
//
// Speed is memory: weights are numbered so that what is met together lies together (see
// features/attributes.py), entries are 32-bit, and the rows of the next t are fetched ahead.
// Threads split the rows in the map. In the adjoint they split the attributes: each has the list of its
// rows, whose parts are added in registers, in their order, whatever the number of threads.
#include <utility>

#include "simd.hpp"
#include "wide_entries.hpp"
#include "wide_rows.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(void wide_map(const WideEntries&, const double* weights, double* out);
                  void wide_adjoint(const WideColumns&, const double* parts, std::size_t rows,
                                    double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kAhead = 2;  // rows between fetching and using

// Outputs 4 first .. 4 (first + units), at most kSmall units of four, whose sums stay in registers.
// Long rows are done panel by panel: what a panel needs of all weights stays in the cache.
struct Panel {
    std::size_t first, units;

    // How many units of an entry fall into the panel.
    CHORDAL_INLINE std::size_t part_of(std::size_t entry_units) const {
        const std::size_t rest = entry_units > first ? entry_units - first : 0;
        return rest < units ? rest : units;
    }
    bool whole(std::size_t outputs) const { return 4 * (first + units) <= outputs; }
};

template <class F>
void for_panels(std::size_t outputs, F f) {
    const std::size_t units = (outputs + 3) / 4, panels = (units + kSmall - 1) / kSmall;
    for (std::size_t k = 0, first = 0; k < panels; ++k) {
        const std::size_t last = units * (k + 1) / panels;
        f(Panel{first, last - first});
        first = last;
    }
}

CHORDAL_INLINE void prefetch_row(const WideEntries& x, std::size_t t, const Panel& panel,
                                 const double* weights) {
    if (t >= x.rows) return;
    for (auto e = x.begin[t]; e < x.begin[t + 1]; ++e) {
        const std::size_t end = 4 * (panel.first + panel.units), size = x.size(e);
        const double* row = weights + x.offset(e);
        CHORDAL_PREFETCH(row + 4 * panel.first);
        CHORDAL_PREFETCH(row + (size < end ? size : end) - 1);
    }
}

// `One`: there is one panel, and units are of four.
template <bool Valued, bool One>
void map_panel(const WideEntries& x, const Panel& panel, const double* weights, double* out) {
    const std::size_t n = x.outputs, begin = 4 * panel.first, per_unit = x.unit / 4;
    const bool whole = panel.whole(n);
    double rest[kSmall * 4];
    for (std::size_t t = 0; t < x.rows; ++t) {
        prefetch_row(x, t + kAhead, panel, weights);
        Pack sum[kSmall * kPacks];
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k) sum[k] = broadcast(0.0);
        for (auto e = x.begin[t]; e < x.begin[t + 1]; ++e) {
            const double* w = weights + (x.code[e] >> 5) * (One ? 4 : x.unit) + begin;
            const Pack scale = broadcast(Valued ? x.value[e] : 1.0);
            auto add = [&](std::size_t unit) {
                CHORDAL_UNROLL
                for (std::size_t k = unit * kPacks; k < (unit + 1) * kPacks; ++k)
                    sum[k] = Valued ? scale * load(w + k * kLanes) + sum[k]
                                    : sum[k] + load(w + k * kLanes);
            };
            CHORDAL_FOR_UNITS(One ? x.code[e] & 31 : panel.part_of((x.code[e] & 31) * per_unit), add)
        }
        double* to = whole ? out + t * n + begin : rest;
        auto put = [&](std::size_t unit) {
            CHORDAL_UNROLL
            for (std::size_t k = unit * kPacks; k < (unit + 1) * kPacks; ++k)
                store(to + k * kLanes, sum[k]);
        };
        CHORDAL_FOR_UNITS(panel.units, put)
        if (!whole) std::memcpy(out + t * n + begin, rest, (n - begin) * sizeof(double));
    }
}

// The sums of one column, U units of them: g += Σ_e x_e p_{row e}, from rows `stride` apart.
template <bool Valued, std::size_t U>
void add_rows(const WideColumns& x, std::size_t c, const double* parts, std::size_t stride,
              double* g) {
    constexpr std::uint32_t kFetched = 8;  // entries between fetching and using
    Pack sum[U * kPacks];
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < U * kPacks; ++k) sum[k] = load(g + k * kLanes);
    for (auto e = x.begin[c]; e < x.begin[c + 1]; ++e) {
        if (e + kFetched < x.begin[x.columns]) CHORDAL_PREFETCH(parts + x.row[e + kFetched] * stride);
        const double* p = parts + x.row[e] * stride;
        const Pack scale = broadcast(Valued ? x.value[e] : 1.0);
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < U * kPacks; ++k)
            sum[k] = Valued ? scale * load(p + k * kLanes) + sum[k] : sum[k] + load(p + k * kLanes);
    }
    CHORDAL_UNROLL
    for (std::size_t k = 0; k < U * kPacks; ++k) store(g + k * kLanes, sum[k]);
}

template <bool Valued, std::size_t... U>
void adjoint_panel(const WideColumns& x, const Panel& panel, const double* parts, std::size_t stride,
                   double* out, std::index_sequence<U...>) {
    using Add = void (*)(const WideColumns&, std::size_t, const double*, std::size_t, double*);
    constexpr Add add[] = {nullptr, &add_rows<Valued, U + 1>...};
    for (std::size_t c = 0; c < x.columns; ++c) {
        const std::size_t units = panel.part_of((x.code[c] & 31) * x.unit / 4);
        if (units) add[units](x, c, parts, stride, out + (x.code[c] >> 5) * x.unit + 4 * panel.first);
    }
}

template <bool One>
void map_by_panels(const WideEntries& x, const double* weights, double* out) {
    for_panels(x.outputs, [&](const Panel& panel) {
        x.value ? map_panel<true, One>(x, panel, weights, out)
                : map_panel<false, One>(x, panel, weights, out);
    });
}

void wide_map(const WideEntries& x, const double* weights, double* out) {
    x.outputs <= 4 * kSmall ? map_by_panels<true>(x, weights, out)
                            : map_by_panels<false>(x, weights, out);
}

// Parts are copied, a panel after another: its rows then lie side by side, padded with zeros.
void wide_adjoint(const WideColumns& x, const double* parts, std::size_t rows, double* out) {
    Scratch copy(rows * kSmall * 4);
    for_panels(x.outputs, [&](const Panel& panel) {
        const std::size_t stride = 4 * panel.units, begin = 4 * panel.first;
        const std::size_t n = begin + stride <= x.outputs ? stride : x.outputs - begin;
        for (std::size_t t = 0; t < rows; ++t) {
            const double* from = parts + t * x.outputs + begin;
            double* to = copy.data() + t * stride;
            std::size_t k = 0;
            for (; k + kLanes <= n; k += kLanes) store(to + k, load(from + k));
            for (; k < stride; ++k) to[k] = k < n ? from[k] : 0.0;
        }
        const std::make_index_sequence<kSmall> sizes;
        x.value ? adjoint_panel<true>(x, panel, copy.data(), stride, out, sizes)
                : adjoint_panel<false>(x, panel, copy.data(), stride, out, sizes);
    });
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <optional>

#include "binding.hpp"

namespace chordal {
namespace {

struct NarrowEntries {
    const std::uint32_t* cell;
    const std::uint32_t* weight;
    const double* value;  // may be null (all ones)
    std::size_t count;
};

template <class Visit>
void narrow(const NarrowEntries& x, Visit visit) {
    if (x.value)
        for (std::size_t e = 0; e < x.count; ++e) visit(x.cell[e], x.weight[e], x.value[e]);
    else
        for (std::size_t e = 0; e < x.count; ++e) visit(x.cell[e], x.weight[e], 1.0);
}

// Adds a function of narrow entries, visited one by one: (cell, weight, value, from, out).
template <class Visit>
void bind_narrow(nb::module_& m, const char* name, const char* from, Visit visit) {
    m.def(
        name,
        [visit](Input<std::uint32_t> cells, Input<std::uint32_t> index,
                std::optional<Input<double>> value, Input<double> from, Output<double> out) {
            GilReleased release;
            narrow({cells.data(), index.data(), value ? value->data() : nullptr, cells.size()},
                   [&visit, f = from.data(), o = out.data()](auto cell, auto index, double x) {
                       visit(cell, index, x, f, o);
                   });
        },
        nb::kw_only(), nb::arg("cells"), nb::arg("index"), nb::arg("value").none(), nb::arg(from),
        nb::arg("out"));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "wide_map",
        [](Input<std::uint32_t> begin, Input<std::uint32_t> code, std::optional<Input<double>> value,
           std::size_t outputs, std::size_t unit, Input<double> weights, Output<double> out) {
            GilReleased release;
            const WideEntries x{begin.data(), code.data(),      value ? value->data() : nullptr,
                                begin.size() - 1, outputs, unit};
            CHORDAL_DISPATCH(wide_map(x, weights.data(), out.data()));
        },
        nb::kw_only(), nb::arg("begin"), nb::arg("code"), nb::arg("value").none(),
        nb::arg("outputs"), nb::arg("unit"), nb::arg("weights"), nb::arg("out"));
    m.def(
        "wide_adjoint",
        [](Input<std::uint32_t> begin, Input<std::uint32_t> code, Input<std::uint32_t> row,
           std::optional<Input<double>> value, std::size_t outputs, std::size_t unit,
           Input<double> parts, Output<double> out) {
            GilReleased release;
            const WideColumns x{begin.data(), code.data(), row.data(), value ? value->data() : nullptr,
                                code.size(),  outputs,     unit};
            CHORDAL_DISPATCH(wide_adjoint(x, parts.data(), parts.size() / outputs, out.data()));
        },
        nb::kw_only(), nb::arg("begin"), nb::arg("code"), nb::arg("row"), nb::arg("value").none(),
        nb::arg("outputs"), nb::arg("unit"), nb::arg("parts"), nb::arg("out"));
    bind_narrow(m, "narrow_map", "weights",
                [](auto cell, auto weight, double x, const double* w, double* s) {
                    s[cell] += x * w[weight];
                });
    bind_narrow(m, "narrow_adjoint", "parts",
                [](auto cell, auto weight, double x, const double* p, double* g) {
                    g[weight] += x * p[cell];
                });
});

}  // namespace chordal
#endif
