// Rows of attributes before training: which pairs they hold, which attributes are the same, and the
// entries that attributes.cpp maps.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "attribute_layout.hpp"
#include "simd.hpp"

namespace chordal {
namespace {

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
    std::size_t segments, outputs, wide;   // wide: how many attributes are

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

// Wide entries by column: see WideColumns.
struct ByColumn {
    std::vector<std::uint32_t> begin, code, row;
    std::vector<double> value;
};

struct Compiled {
    std::vector<std::uint32_t> wide_offsets, wide_codes;
    std::vector<double> wide_values;
    ByColumn columns;
    NarrowColumns narrow;
    std::vector<std::int64_t> segment_offsets;
};

template <class T>
void append(const std::vector<T>& from, std::vector<T>& to) {
    to.insert(to.end(), from.begin(), from.end());
}

// A counting sort of the rows' wide entries; columns without any are left out.
ByColumn by_column(const std::int64_t* offsets, const std::int32_t* ids, const double* values,
                   std::size_t rows, const Layout& layout) {
    std::vector<std::uint32_t> next(layout.wide, 0), code(layout.wide);
    std::uint32_t entries = 0;
    for (auto e = offsets[0]; e < offsets[rows]; ++e) {
        const Place& place = layout.place[ids[e]];
        if (place.wide_code == 0) continue;
        code[place.first] = place.wide_code;
        ++next[place.first];
        ++entries;
    }
    ByColumn out;
    std::uint32_t begin = 0;
    for (std::size_t c = 0; c < layout.wide; ++c) {
        const std::uint32_t count = std::exchange(next[c], begin);
        if (count == 0) continue;
        out.begin.push_back(begin);
        out.code.push_back(code[c]);
        begin += count;
    }
    out.begin.push_back(begin);
    out.row.resize(entries);
    out.value.resize(values ? entries : 0);
    for (std::size_t t = 0; t < rows; ++t)
        for (auto e = offsets[t]; e < offsets[t + 1]; ++e) {
            const Place& place = layout.place[ids[e]];
            if (place.wide_code == 0) continue;
            const std::uint32_t to = next[place.first]++;
            out.row[to] = static_cast<std::uint32_t>(t);
            if (values) out.value[to] = values[e];
        }
    return out;
}

Compiled compile_rows(const std::int64_t* offsets, const std::int32_t* ids, const double* values,
                      std::size_t rows, const Layout& layout) {
    Compiled out;
    out.columns = by_column(offsets, ids, values, rows, layout);
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
            NarrowColumns& to = segments[layout.segment_of(place.first)];
            for (std::uint32_t p = 0; p < place.pairs; ++p) {
                const auto k = static_cast<std::size_t>(layout.pair_outputs[place.pairs_begin + p]);
                to.cells.push_back(static_cast<std::uint32_t>(t * layout.outputs + k));
                to.weights.push_back(place.first + p);
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
    nb::class_<AttributeLayout>(m, "AttributeLayout", "Where the weights of attributes are.")
        .def("__init__",
             [](AttributeLayout* self, Input<std::uint32_t> places, Input<std::int32_t> pair_outputs,
                Input<std::int64_t> segment_limits, std::size_t outputs, std::size_t wide,
                std::size_t unit) {
                 new (self)
                     AttributeLayout{places, pair_outputs, segment_limits, outputs, wide, unit};
             },
             nb::arg("places"), nb::arg("pair_outputs"), nb::arg("segment_limits"), nb::kw_only(),
             nb::arg("outputs"), nb::arg("wide"), nb::arg("unit"));
    m.def(
        "attribute_pairs",
        [](Input<std::int64_t> offsets, Input<std::int32_t> ids, Input<std::int32_t> outputs,
           std::size_t n_attributes, std::size_t n_outputs) {
            auto [pair_offsets, pair_outputs, counts] = [&] {
                GilReleased release;
                return count_pairs(offsets.data(), ids.data(), outputs.data(), outputs.size(),
                                   n_attributes, n_outputs);
            }();
            return std::make_tuple(array_of(std::move(pair_offsets)),
                                   array_of(std::move(pair_outputs)), array_of(std::move(counts)));
        },
        nb::kw_only(), nb::arg("offsets"), nb::arg("ids"), nb::arg("outputs"),
        nb::arg("n_attributes"), nb::arg("n_outputs"),
        "Pairs (attribute, output) that occur: offsets by attribute, outputs, and how often.");
    m.def(
        "attribute_groups",
        [](Input<std::int64_t> offsets, Input<std::int32_t> ids, std::size_t n_attributes) {
            std::vector<std::int32_t> first;
            {
                GilReleased release;
                first = groups(offsets.data(), ids.data(), offsets.size() - 1, n_attributes);
            }
            return array_of(std::move(first));
        },
        nb::arg("offsets"), nb::arg("ids"), nb::arg("n_attributes"),
        "Of each attribute, the first that occurs in the same rows.");
    m.def(
        "attribute_rows",
        [](const AttributeLayout& x, Input<std::int64_t> offsets, Input<std::int32_t> ids,
           std::optional<Input<double>> values) {
            const Layout layout{x.place(), x.pair_outputs.data(), x.segment_limits.data(),
                                x.segment_limits.size() - 1, x.outputs, x.wide};
            Compiled rows;
            {
                GilReleased release;
                rows = compile_rows(offsets.data(), ids.data(),
                                    values ? values->data() : nullptr, offsets.size() - 1, layout);
            }
            return std::make_tuple(
                array_of(std::move(rows.wide_offsets)), array_of(std::move(rows.wide_codes)),
                array_of(std::move(rows.wide_values)), array_of(std::move(rows.columns.begin)),
                array_of(std::move(rows.columns.code)), array_of(std::move(rows.columns.row)),
                array_of(std::move(rows.columns.value)), array_of(std::move(rows.narrow.cells)),
                array_of(std::move(rows.narrow.weights)),
                array_of(std::move(rows.narrow.values)),
                array_of(std::move(rows.segment_offsets)));
        },
        nb::arg("layout"), nb::arg("offsets"), nb::arg("ids"), nb::arg("values").none(),
        "Rows and columns of wide entries, narrow entries, and where their segments begin.");
});

}  // namespace chordal
