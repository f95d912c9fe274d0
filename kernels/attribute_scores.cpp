// Scores of rows that are seen once, such as those of new text.
//
//   s_t(k) = Σ_{a in row t} x_ta w(a, k)
//
// It is the map of attributes.cpp, whose layout of weights it shares, from the attributes as they
// were read: compiling rows pays off when they are mapped again and again.
//
// What takes time is cache misses: entries are fetched in two steps, where an attribute's weights
// are and then the weights. The wide rows are added in registers, narrow pairs in memory.
#include "attribute_scores.hpp"
#include "wide_rows.hpp"

namespace chordal {

CHORDAL_BOTH_ISAS(void attribute_scores(const AttributeEntries&, const ExpandedWeights&,
                                        double* out);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

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
        CHORDAL_PREFETCH(&w.narrow[place.first]);
    }
}

CHORDAL_INLINE void add_narrow(const Place& place, double value, const ExpandedWeights& w,
                               double* row) {
    for (std::uint32_t p = 0; p < place.pairs; ++p)
        row[w.pair_outputs[place.pairs_begin + p]] += value * w.narrow[place.first + p];
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
#include "attribute_layout.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    m.def(
        "attribute_scores",
        [](const AttributeLayout& layout, Input<std::int64_t> offsets, Input<std::int32_t> ids,
           std::optional<Input<double>> values, Input<double> wide, Input<double> narrow,
           Output<double> out) {
            GilReleased release;
            const AttributeEntries x{offsets.data(), ids.data(), values ? values->data() : nullptr,
                                     offsets.size() - 1};
            const ExpandedWeights w{layout.place(), layout.pair_outputs.data(), wide.data(),
                                    narrow.data(), layout.outputs, layout.unit};
            CHORDAL_DISPATCH(attribute_scores(x, w, out.data()));
        },
        nb::arg("layout"), nb::arg("offsets"), nb::arg("ids"), nb::kw_only(),
        nb::arg("values").none(), nb::arg("wide"), nb::arg("narrow"), nb::arg("out"));
});

}  // namespace chordal
#endif
