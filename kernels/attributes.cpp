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
// Threads split the rows in the map. In the adjoint they split the weights, each walking all rows
// in order, so every sum is taken in the same order whatever the number of threads.
#include "simd.hpp"
#include "wide_entries.hpp"

namespace chordal {

// Where an attribute's weights are: its wide code, or 0 and its narrow pairs.
struct Place {
    std::uint32_t wide_code, first_weight, pairs_begin, pairs;
};

// Rows as they were read; value may be null (all ones).
struct AttributeEntries {
    const std::int64_t* offset;  // [rows + 1]
    const std::int32_t* id;
    const double* value;
    std::size_t rows;
};

struct ExpandedWeights {
    const Place* place;  // [attributes]
    const std::int32_t* pair_outputs;
    const double *wide, *narrow;
    std::size_t outputs, unit;
};

CHORDAL_BOTH_ISAS(void wide_map(const WideEntries&, const double* weights, double* out);
                  void wide_adjoint(const WideEntries&, const double* parts, double* out);
                  void attribute_scores(const AttributeEntries&, const ExpandedWeights&,
                                        double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

constexpr std::size_t kAhead = 2;  // rows between fetching and using

CHORDAL_INLINE void prefetch_row(const WideEntries& x, std::size_t t, const double* weights) {
    if (t >= x.rows) return;
    for (auto e = x.begin[t]; e < x.end[t]; ++e) {
        const double* row = weights + x.offset(e);
        CHORDAL_PREFETCH(row);
        CHORDAL_PREFETCH(row + x.size(e) - 1);
    }
}

// Up to kSmall units of four doubles are kept in registers; a switch that falls through adds as
// many of them as a row has, without a loop.
constexpr std::size_t kSmall = 8;
constexpr std::size_t kPacks = 4 / kLanes;  // of a unit

#define CHORDAL_FOR_UNITS(count, visit) \
    switch (count) {                    \
        case 8: visit(7); [[fallthrough]]; \
        case 7: visit(6); [[fallthrough]]; \
        case 6: visit(5); [[fallthrough]]; \
        case 5: visit(4); [[fallthrough]]; \
        case 4: visit(3); [[fallthrough]]; \
        case 3: visit(2); [[fallthrough]]; \
        case 2: visit(1); [[fallthrough]]; \
        case 1: visit(0); [[fallthrough]]; \
        default: break;                 \
    }

template <bool Valued>
void small_map(const WideEntries& x, const double* weights, double* out) {
    const std::size_t n = x.outputs;
    Scratch row(kSmall * 4);
    for (std::size_t t = 0; t < x.rows; ++t) {
        prefetch_row(x, t + kAhead, weights);
        Pack sum[kSmall * kPacks];
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k) sum[k] = broadcast(0.0);
        for (auto e = x.begin[t]; e < x.end[t]; ++e) {
            const double* w = weights + (x.code[e] >> 5) * std::size_t{4};
            const Pack scale = broadcast(Valued ? x.value[e] : 1.0);
            auto add = [&](std::size_t unit) {
                CHORDAL_UNROLL
                for (std::size_t k = unit * kPacks; k < (unit + 1) * kPacks; ++k)
                    sum[k] = Valued ? scale * load(w + k * kLanes) + sum[k]
                                    : sum[k] + load(w + k * kLanes);
            };
            CHORDAL_FOR_UNITS(x.code[e] & 31, add)
        }
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k) store(&row[k * kLanes], sum[k]);
        std::memcpy(out + t * n, row.data(), n * sizeof(double));
    }
}

template <bool Valued>
void small_adjoint(const WideEntries& x, const double* parts, double* out) {
    const std::size_t n = x.outputs;
    Scratch row(kSmall * 4);
    std::memset(row.data(), 0, kSmall * 4 * sizeof(double));
    for (std::size_t t = 0; t < x.rows; ++t) {
        prefetch_row(x, t + kAhead, out);
        std::memcpy(row.data(), parts + t * n, n * sizeof(double));
        Pack p[kSmall * kPacks];
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k) p[k] = load(&row[k * kLanes]);
        for (auto e = x.begin[t]; e < x.end[t]; ++e) {
            double* g = out + (x.code[e] >> 5) * std::size_t{4};
            const Pack scale = broadcast(Valued ? x.value[e] : 1.0);
            auto add = [&](std::size_t unit) {
                CHORDAL_UNROLL
                for (std::size_t k = unit * kPacks; k < (unit + 1) * kPacks; ++k) {
                    const Pack old = load(g + k * kLanes);
                    store(g + k * kLanes, Valued ? scale * p[k] + old : old + p[k]);
                }
            };
            CHORDAL_FOR_UNITS(x.code[e] & 31, add)
        }
    }
}

// to += a * from, n a multiple of the unit
CHORDAL_INLINE void add_scaled(double a, const double* from, double* to, std::size_t n) {
    const Pack scale = broadcast(a);
    for (std::size_t k = 0; k < n; k += kLanes)
        store(to + k, scale * load(from + k) + load(to + k));
}

void wide_map(const WideEntries& x, const double* weights, double* out) {
    const std::size_t n = x.outputs, width = (n + x.unit - 1) / x.unit * x.unit;
    if (width <= kSmall * 4)
        return x.value ? small_map<true>(x, weights, out) : small_map<false>(x, weights, out);
    Scratch sum(width);
    double* s = sum.data();
    for (std::size_t t = 0; t < x.rows; ++t) {
        prefetch_row(x, t + kAhead, weights);
        std::memset(s, 0, width * sizeof(double));
        for (auto e = x.begin[t]; e < x.end[t]; ++e)
            add_scaled(x.value ? x.value[e] : 1.0, weights + x.offset(e), s, x.size(e));
        std::memcpy(out + t * n, s, n * sizeof(double));
    }
}

void wide_adjoint(const WideEntries& x, const double* parts, double* out) {
    const std::size_t n = x.outputs, width = (n + x.unit - 1) / x.unit * x.unit;
    if (width <= kSmall * 4)
        return x.value ? small_adjoint<true>(x, parts, out) : small_adjoint<false>(x, parts, out);
    Scratch row(width);
    double* p = row.data();
    std::memset(p, 0, width * sizeof(double));
    for (std::size_t t = 0; t < x.rows; ++t) {
        prefetch_row(x, t + kAhead, out);
        std::memcpy(p, parts + t * n, n * sizeof(double));
        for (auto e = x.begin[t]; e < x.end[t]; ++e)
            add_scaled(x.value ? x.value[e] : 1.0, p, out + x.offset(e), x.size(e));
    }
}

// The map of rows that are seen once: what compiling them and both maps do, without their arrays.
// Entries are fetched in two steps, where weights are and then the weights.
CHORDAL_INLINE void prefetch_entry(const AttributeEntries& x, std::int64_t e,
                                   const ExpandedWeights& w) {
    constexpr std::int64_t kPlace = 24, kWeights = 12;  // entries ahead
    const std::int64_t count = x.offset[x.rows];
    if (e + kPlace < count) CHORDAL_PREFETCH(&w.place[x.id[e + kPlace]]);
    if (e + kWeights >= count) return;
    const Place& place = w.place[x.id[e + kWeights]];
    if (place.wide_code != 0) {
        const double* row = w.wide + (place.wide_code >> 5) * w.unit;
        CHORDAL_PREFETCH(row);
        CHORDAL_PREFETCH(row + (place.wide_code & 31) * w.unit - 1);
    } else {
        CHORDAL_PREFETCH(&w.pair_outputs[place.pairs_begin]);
        CHORDAL_PREFETCH(&w.narrow[place.first_weight]);
    }
}

CHORDAL_INLINE void add_narrow(const Place& place, double value, const ExpandedWeights& w,
                               double* row) {
    for (std::uint32_t p = 0; p < place.pairs; ++p)
        row[w.pair_outputs[place.pairs_begin + p]] += value * w.narrow[place.first_weight + p];
}

void small_scores(const AttributeEntries& x, const ExpandedWeights& w, double* out) {
    const std::size_t n = w.outputs;
    Scratch row(kSmall * 4);
    for (std::size_t t = 0; t < x.rows; ++t) {
        Pack sum[kSmall * kPacks];
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k) sum[k] = broadcast(0.0);
        std::memset(row.data(), 0, kSmall * 4 * sizeof(double));
        for (auto e = x.offset[t]; e < x.offset[t + 1]; ++e) {
            prefetch_entry(x, e, w);
            const Place& place = w.place[x.id[e]];
            const double value = x.value ? x.value[e] : 1.0;
            if (place.wide_code == 0) {
                add_narrow(place, value, w, row.data());
                continue;
            }
            const double* weights = w.wide + (place.wide_code >> 5) * std::size_t{4};
            const Pack scale = broadcast(value);
            auto add = [&](std::size_t unit) {
                CHORDAL_UNROLL
                for (std::size_t k = unit * kPacks; k < (unit + 1) * kPacks; ++k)
                    sum[k] = scale * load(weights + k * kLanes) + sum[k];
            };
            CHORDAL_FOR_UNITS(place.wide_code & 31, add)
        }
        CHORDAL_UNROLL
        for (std::size_t k = 0; k < kSmall * kPacks; ++k)
            store(&row[k * kLanes], sum[k] + load(&row[k * kLanes]));
        std::memcpy(out + t * n, row.data(), n * sizeof(double));
    }
}

void attribute_scores(const AttributeEntries& x, const ExpandedWeights& w, double* out) {
    const std::size_t n = w.outputs, width = (n + w.unit - 1) / w.unit * w.unit;
    if (width <= kSmall * 4) return small_scores(x, w, out);
    Scratch row(width);
    for (std::size_t t = 0; t < x.rows; ++t) {
        std::memset(row.data(), 0, width * sizeof(double));
        for (auto e = x.offset[t]; e < x.offset[t + 1]; ++e) {
            prefetch_entry(x, e, w);
            const Place& place = w.place[x.id[e]];
            const double value = x.value ? x.value[e] : 1.0;
            if (place.wide_code == 0)
                add_narrow(place, value, w, row.data());
            else
                add_scaled(value, w.wide + (place.wide_code >> 5) * w.unit, row.data(),
                           (place.wide_code & 31) * w.unit);
        }
        std::memcpy(out + t * n, row.data(), n * sizeof(double));
    }
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

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

// Which outputs each attribute is seen with, and how often: pair_offsets, outputs, counts.
auto count_pairs(const std::int64_t* offsets, const std::int32_t* ids, const std::int32_t* outputs,
                 std::size_t rows, std::size_t attributes, std::size_t n_outputs) {
    // Counting sort of the rows' outputs by attribute.
    std::vector<std::int64_t> start(attributes + 1, 0);
    const auto entries = static_cast<std::size_t>(offsets[rows]);
    for (std::size_t e = 0; e < entries; ++e) ++start[static_cast<std::size_t>(ids[e]) + 1];
    for (std::size_t a = 0; a < attributes; ++a) start[a + 1] += start[a];
    std::vector<std::int32_t> sorted(entries);
    std::vector<std::int64_t> place(start.begin(), start.end() - 1);
    for (std::size_t t = 0; t < rows; ++t)
        for (auto e = offsets[t]; e < offsets[t + 1]; ++e)
            sorted[static_cast<std::size_t>(place[static_cast<std::size_t>(ids[e])]++)] = outputs[t];
    std::vector<std::int64_t> pair_offsets(attributes + 1, 0);
    std::vector<std::int32_t> pair_outputs, pair_counts, seen;
    std::vector<std::int32_t> count(n_outputs, 0);
    for (std::size_t a = 0; a < attributes; ++a) {
        seen.clear();
        for (auto e = start[a]; e < start[a + 1]; ++e) {
            const std::int32_t k = sorted[static_cast<std::size_t>(e)];
            if (count[static_cast<std::size_t>(k)]++ == 0) seen.push_back(k);
        }
        std::sort(seen.begin(), seen.end());
        for (const std::int32_t k : seen) {
            pair_outputs.push_back(k);
            pair_counts.push_back(count[static_cast<std::size_t>(k)]);
            count[static_cast<std::size_t>(k)] = 0;
        }
        pair_offsets[a + 1] = static_cast<std::int64_t>(pair_outputs.size());
    }
    return std::make_tuple(std::move(pair_offsets), std::move(pair_outputs),
                           std::move(pair_counts));
}

// For each attribute the first of those that occur in exactly the same rows, by refining a
// partition: a row splits every class of which it holds some members and not all. Empty if a row
// holds an attribute twice.
std::vector<std::int32_t> groups(const std::int64_t* offsets, const std::int32_t* ids,
                                 std::size_t rows, std::size_t attributes) {
    std::vector<std::uint32_t> of(attributes, 0);    // class of each attribute
    std::vector<std::size_t> last(attributes, rows);  // row it was last seen in
    // Of a class: its members, those in the current row, and the class these go to.
    struct Class {
        std::uint32_t size, here, target;
    };
    std::vector<Class> classes{{static_cast<std::uint32_t>(attributes), 0, 0}};
    for (std::size_t t = 0; t < rows; ++t) {
        for (auto e = offsets[t]; e < offsets[t + 1]; ++e) {
            if (e + 16 < offsets[rows]) CHORDAL_PREFETCH(&of[static_cast<std::size_t>(ids[e + 16])]);
            const auto a = static_cast<std::size_t>(ids[e]);
            if (last[a] == t) return {};
            last[a] = t;
            ++classes[of[a]].here;
        }
        for (auto e = offsets[t]; e < offsets[t + 1]; ++e) {
            auto& member = of[static_cast<std::size_t>(ids[e])];
            const std::uint32_t old = member;
            if (classes[old].here == 0) continue;  // its members are all here, and seen to
            if (classes[old].here == classes[old].size) {
                classes[old].here = 0;
                continue;
            }
            if (classes[old].target == 0) {
                classes[old].target = static_cast<std::uint32_t>(classes.size());
                classes.push_back({0, 0, 0});
            }
            member = classes[old].target;
            ++classes[member].size;
            --classes[old].size;
            if (--classes[old].here == 0) classes[old].target = 0;
        }
    }
    std::vector<std::int32_t> first(classes.size(), -1), out(attributes);
    for (std::size_t a = 0; a < attributes; ++a) {
        if (first[of[a]] < 0) first[of[a]] = static_cast<std::int32_t>(a);
        out[a] = first[of[a]];
    }
    return out;
}

struct Layout {
    const Place* place;                    // [attributes]
    const std::int32_t* pair_outputs;
    const std::int64_t* segment_limits;    // [segments + 1] of narrow weights
    std::size_t segments, outputs;

    std::size_t segment_of(std::uint32_t weight) const {
        std::size_t s = 0;
        while (weight >= segment_limits[s + 1]) ++s;
        return s;
    }
};

struct NarrowColumns {
    std::vector<std::uint32_t> cells, weights;
    std::vector<double> values;
};

struct Compiled {
    std::vector<std::uint32_t> wide_offsets, wide_codes;
    std::vector<double> wide_values;
    NarrowColumns narrow;
    std::vector<std::int64_t> segment_offsets;
};

template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
    to.insert(to.end(), from.begin(), from.end());
}

Compiled compile_rows(const std::int64_t* offsets, const std::int32_t* ids, const double* values,
                      std::size_t rows, const Layout& layout) {
    Compiled out;
    out.wide_offsets.assign(1, 0);
    out.wide_offsets.reserve(rows + 1);
    out.wide_codes.reserve(static_cast<std::size_t>(offsets[rows]));
    std::vector<std::pair<std::uint32_t, double>> valued;
    std::vector<NarrowColumns> segments(layout.segments);
    const std::int64_t entries = offsets[rows], ahead = 16;
    for (std::size_t t = 0; t < rows; ++t) {
        valued.clear();
        const auto first = static_cast<std::ptrdiff_t>(out.wide_codes.size());
        for (auto e = offsets[t]; e < offsets[t + 1]; ++e) {
            if (e + ahead < entries) CHORDAL_PREFETCH(&layout.place[ids[e + ahead]]);
            const Place& place = layout.place[ids[e]];
            if (place.wide_code != 0) {
                if (values)
                    valued.emplace_back(place.wide_code, values[e]);
                else
                    out.wide_codes.push_back(place.wide_code);
                continue;
            }
            if (place.pairs == 0) continue;
            NarrowColumns& to = segments[layout.segment_of(place.first_weight)];
            for (std::uint32_t p = 0; p < place.pairs; ++p) {
                const auto k = static_cast<std::size_t>(layout.pair_outputs[place.pairs_begin + p]);
                to.cells.push_back(static_cast<std::uint32_t>(t * layout.outputs + k));
                to.weights.push_back(place.first_weight + p);
                if (values) to.values.push_back(values[e]);
            }
        }
        std::sort(valued.begin(), valued.end());
        for (const auto& [code, value] : valued) {
            out.wide_codes.push_back(code);
            out.wide_values.push_back(value);
        }
        if (!values) std::sort(out.wide_codes.begin() + first, out.wide_codes.end());
        out.wide_offsets.push_back(static_cast<std::uint32_t>(out.wide_codes.size()));
    }
    out.wide_codes.shrink_to_fit();
    out.segment_offsets.assign(1, 0);
    for (NarrowColumns& segment : segments) {
        append(segment.cells, out.narrow.cells);
        append(segment.weights, out.narrow.weights);
        append(segment.values, out.narrow.values);
        out.segment_offsets.push_back(static_cast<std::int64_t>(out.narrow.cells.size()));
    }
    return out;
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def("attribute_pairs", [](Input<std::int64_t> offsets, Input<std::int32_t> ids,
                                Input<std::int32_t> outputs, std::size_t attributes,
                                std::size_t n_outputs) {
        auto [pair_offsets, pair_outputs, counts] = [&] {
            nb::gil_scoped_release release;
            return count_pairs(offsets.data(), ids.data(), outputs.data(), outputs.size(),
                               attributes, n_outputs);
        }();
        return std::make_tuple(array_of(std::move(pair_offsets)),
                               array_of(std::move(pair_outputs)), array_of(std::move(counts)));
    });
    m.def("attribute_groups", [](Input<std::int64_t> offsets, Input<std::int32_t> ids,
                                 std::size_t attributes) {
        std::vector<std::int32_t> first;
        {
            nb::gil_scoped_release release;
            first = groups(offsets.data(), ids.data(), offsets.size() - 1, attributes);
        }
        return array_of(std::move(first));
    });
    m.def(
        "attribute_rows",
        [](Input<std::int64_t> offsets, Input<std::int32_t> ids,
           std::optional<Input<double>> values, Input<std::uint32_t> places,
           Input<std::int32_t> pair_outputs, Input<std::int64_t> segment_limits,
           std::size_t outputs) {
            const Layout layout{reinterpret_cast<const Place*>(places.data()),
                                pair_outputs.data(), segment_limits.data(),
                                segment_limits.size() - 1, outputs};
            Compiled rows;
            {
                nb::gil_scoped_release release;
                rows = compile_rows(offsets.data(), ids.data(),
                                    values ? values->data() : nullptr, offsets.size() - 1, layout);
            }
            return std::make_tuple(
                array_of(std::move(rows.wide_offsets)), array_of(std::move(rows.wide_codes)),
                array_of(std::move(rows.wide_values)), array_of(std::move(rows.narrow.cells)),
                array_of(std::move(rows.narrow.weights)),
                array_of(std::move(rows.narrow.values)),
                array_of(std::move(rows.segment_offsets)));
        },
        nb::arg("offsets"), nb::arg("ids"), nb::arg("values").none(), nb::arg("places"),
        nb::arg("pair_outputs"), nb::arg("segment_limits"), nb::arg("outputs"));
    m.def(
        "attribute_scores",
        [](Input<std::int64_t> offsets, Input<std::int32_t> ids,
           std::optional<Input<double>> values, Input<std::uint32_t> places,
           Input<std::int32_t> pair_outputs, Input<double> wide, Input<double> narrow,
           std::size_t outputs, std::size_t unit, Output<double> out) {
            nb::gil_scoped_release release;
            const AttributeEntries x{offsets.data(), ids.data(), values ? values->data() : nullptr,
                                     offsets.size() - 1};
            const ExpandedWeights w{reinterpret_cast<const Place*>(places.data()),
                                    pair_outputs.data(),
                                    wide.data(),
                                    narrow.data(),
                                    outputs,
                                    unit};
            CHORDAL_DISPATCH(attribute_scores(x, w, out.data()));
        },
        nb::arg("offsets"), nb::arg("ids"), nb::arg("values").none(), nb::arg("places"),
        nb::arg("pair_outputs"), nb::arg("wide"), nb::arg("narrow"), nb::arg("outputs"),
        nb::arg("unit"), nb::arg("out"));
    m.def(
        "wide_map",
        [](Input<std::uint32_t> begin, Input<std::uint32_t> end, Input<std::uint32_t> code,
           std::optional<Input<double>> value, std::size_t outputs, std::size_t unit,
           Input<double> weights,
           Output<double> out) {
            nb::gil_scoped_release release;
            const WideEntries x{begin.data(),
                                end.data(),
                                code.data(),
                                value ? value->data() : nullptr,
                                begin.size(),
                                outputs,
                                unit};
            CHORDAL_DISPATCH(wide_map(x, weights.data(), out.data()));
        },
        nb::arg("begin"), nb::arg("end"), nb::arg("code"), nb::arg("value").none(),
        nb::arg("outputs"), nb::arg("unit"), nb::arg("weights"), nb::arg("out"));
    m.def(
        "wide_adjoint",
        [](Input<std::uint32_t> begin, Input<std::uint32_t> end, Input<std::uint32_t> code,
           std::optional<Input<double>> value, std::size_t outputs, std::size_t unit,
           Input<double> parts,
           Output<double> out) {
            nb::gil_scoped_release release;
            const WideEntries x{begin.data(),
                                end.data(),
                                code.data(),
                                value ? value->data() : nullptr,
                                begin.size(),
                                outputs,
                                unit};
            CHORDAL_DISPATCH(wide_adjoint(x, parts.data(), out.data()));
        },
        nb::arg("begin"), nb::arg("end"), nb::arg("code"), nb::arg("value").none(),
        nb::arg("outputs"), nb::arg("unit"), nb::arg("parts"), nb::arg("out"));
    m.def(
        "narrow_map",
        [](Input<std::uint32_t> cells, Input<std::uint32_t> index,
           std::optional<Input<double>> value, Input<double> weights, Output<double> out) {
            nb::gil_scoped_release release;
            narrow(
                {cells.data(), index.data(), value ? value->data() : nullptr, cells.size()},
                [w = weights.data(), s = out.data()](auto cell, auto index, double x) {
                    s[cell] += x * w[index];
                });
        },
        nb::arg("cells"), nb::arg("index"), nb::arg("value").none(), nb::arg("weights"),
        nb::arg("out"));
    m.def(
        "narrow_adjoint",
        [](Input<std::uint32_t> cells, Input<std::uint32_t> index,
           std::optional<Input<double>> value, Input<double> parts, Output<double> out) {
            nb::gil_scoped_release release;
            narrow(
                {cells.data(), index.data(), value ? value->data() : nullptr, cells.size()},
                [p = parts.data(), g = out.data()](auto cell, auto index, double x) {
                    g[index] += x * p[cell];
                });
        },
        nb::arg("cells"), nb::arg("index"), nb::arg("value").none(), nb::arg("parts"),
        nb::arg("out"));
});

}  // namespace chordal
#endif
