// Belief propagation on any factor graph, with or without loops.
//
// Messages and schedules are those of messages.hpp and schedules.hpp. Sums run in probabilities; an
// example whose numbers lie too far apart is done again in logarithms. From messages at rest,
//
//   log Z ≈ Σ_c log Σ ψ_c Π_{v ∈ c} n_{v→c} + Σ_v log Σ φ_v Π_{c ∋ v} m_{c→v}
//           - Σ_{c, v ∈ c} log Σ n_{v→c} m_{c→v}
//
// the negative of Bethe's free energy, exact without loops; scales of messages cancel. The best
// labelling is read off one variable after another: each takes the best label given those before it,
// whose n is then that label alone. Down a tree this is exact, ties included.
//
// Without loops, a message of zeros proves that nothing is allowed: zeros are only ever propagated,
// never made. With loops and tables that forbid something, φ comes with all that propagation excludes,
// and messages have a floor.
//
// Reference: Yedidia, Freeman and Weiss (2005), Constructing free-energy approximations and
// generalized belief propagation algorithms.
#include "edge_blocks.hpp"
#include "schedules.hpp"

namespace chordal {

struct BeliefResults {
    std::int64_t* iterations;   // [examples]
    double* change;             // [examples]
    double* log_partition;      // [examples]; -inf: nothing is allowed
    const double* weight;       // [examples] or null
    double *unary, *tables;     // marginals are added here, or null; beliefs of the best labelling
    std::int32_t* labels;       // of the best labelling, or null
    bool* late;
};

CHORDAL_BOTH_ISAS(bool propagate_beliefs(const Scores&, const MessageSettings&,
                                         bool (*interrupted)(), const BeliefResults&);)
CHORDAL_BOTH_ISAS(bool propagate_best(const Scores&, const MessageSettings&,
                                      bool (*interrupted)(), const BeliefResults&);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

template <class Ring>
struct Propagation {
    RingTables<Ring> tables;
    EdgeBlocks<Ring> blocks;
    Messages<Ring> messages;
    Scheduler<Ring> scheduler;
    bool abreast = false;  // in blocks
    Scratch row, totals;
    Listening listening;

    Ending run(const Scores& g, const FactorExample& ex, const MessageSettings& settings,
               Interruption& patience) {
        tables.open(g);
        row.resize(padded_of(ex.most_labels));
        const double reach = settings.forbidden && !ex.forest ? reach_of(g, ex) : 0.0;
        abreast = Ring::kSideBySide && settings.schedule == Schedule::parallel && !ex.forest &&
                  reach == 0.0 && !mostly_distances(ex);
        if (abreast) return run_abreast(g, ex, settings, patience);
        for (Int c = 0; c < ex.cliques; ++c) tables.need(ex.table(c));
        messages.open(g, ex, tables);
        messages.set_floor(reach);
        return scheduler.run(messages, settings, patience);
    }
    // Whether most work is on tables of label distances, through which single messages are quicker than blocks.
    bool mostly_distances(const FactorExample& ex) {
        std::size_t quick = 0, all = 0;
        for (Int c = 0; c < ex.cliques; ++c) {
            const Int first = ex.places_of(c);
            if (ex.order_of(c) != 2) continue;
            const std::size_t cells = ex.labels(ex.variable(first)) * ex.labels(ex.variable(first + 1));
            all += cells;
            quick += tables.quicker_than_blocks(ex.table(c)) ? cells : 0;
        }
        return 2 * quick > all;
    }
    Ending run_abreast(const Scores& g, const FactorExample& ex, const MessageSettings& settings,
                       Interruption& patience) {
        if constexpr (Ring::kSideBySide) {
            blocks.open(g, ex, tables);
            messages.open(g, ex, tables);
            if (messages.failed()) return {};
            messages.damping = settings.damping;
            blocks.start(messages);
            const Ending ending = until_settled(messages, settings, patience,
                                                [&](Int) { return blocks.sweep(messages, patience); });
            blocks.settle(messages, Ring::kLogarithms);
            return ending;
        }
        return {};
    }

    // b_v into `row`, up to a factor, whose logarithm is returned.
    double belief(const FactorExample& ex, Int v) {
        if (!abreast || !messages.tame(ex.degree(v))) return messages.belief(v, row.data());
        blocks.belief(v, row.data());
        return messages.shift(v);
    }
    // Where products are not scaled, Σ n m is the same at all places of a variable.
    double bethe(const FactorExample& ex) {
        double value = 0.0;
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(8 * ex.width(v) * static_cast<std::size_t>(1 + ex.degree(v)));
            value += belief(ex, v);
            const double total = Ring::to_log(Ring::total(row.data(), ex.width(v)));
            if (messages.vanished || total == -kInfinity) return -kInfinity;
            value += total;
            if (messages.tame(ex.degree(v)))
                value -= static_cast<double>(ex.degree(v)) * total;
            else
                for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot)
                    value -= messages.place_total(ex.place_of(slot));
        }
        totals.resize(static_cast<std::size_t>(ex.cliques));
        if constexpr (Ring::kSideBySide)
            for (Int b = 0; abreast && b < blocks.blocks; ++b, listening.spend(tables.largest()))
                blocks.totals(messages, b, totals.data());
        for_single(ex, [&](Int c) {
            totals[c] = messages.clique_total(c);
            listening.spend(tables.largest() + 64);
        });
        for (Int c = 0; c < ex.cliques; ++c) value += totals[c] + messages.shift_of_clique(c);
        return value > -kInfinity ? value : -kInfinity;  // NaN: a total of nothing
    }

    void write(const Scores& g, const FactorExample& ex, double weight, double* unary,
               double* cells) {
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(64 * ex.width(v));
            belief(ex, v);
            Ring::to_probabilities(row.data(), ex.width(v));
            double* to = unary + ex.first_state(v);
            for (std::size_t x = 0; x < ex.labels(v); ++x) to[x] += weight * row[x];
        }
        for (Int b = 0; abreast && b < blocks.blocks; ++b, listening.spend(16 * tables.largest()))
            blocks.add(b, totals.data(), weight, cells);
        for_single(ex, [&](Int c) {
            messages.add_clique(c, totals[c], weight, cells + g.table_offsets[ex.table(c)]);
        });
    }
    // Calls f(c) for the cliques that are in no block.
    template <class F>
    void for_single(const FactorExample& ex, F f) const {
        if (abreast) return blocks.for_others(f);
        for (Int c = 0; c < ex.cliques; ++c) f(c);
    }

    // What each label has with the best of the others, by messages alone, up to a constant.
    void rank(const FactorExample& ex, double* unary) {
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(16 * ex.width(v));
            belief(ex, v);
            for (std::size_t x = 0; x < ex.labels(v); ++x) unary[ex.first_state(v) + static_cast<Int>(x)] = row[x];
        }
    }
    // What messages exclude, given labels that are settled, counts as such.
    void decode(const FactorExample& ex, std::int32_t* labels) {
        messages.set_floor(0.0);
        for (Int c = 0; c < ex.cliques; ++c) tables.need(ex.table(c));
        for (Int k = 0; k < ex.variables; ++k) {
            const Int v = ex.forest ? ex.order[k] : k;
            listening.spend(tables.largest() * static_cast<std::size_t>(1 + ex.degree(v)));
            messages.vanished = false;  // a dead end: the score will say so
            for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot)
                messages.update(ex.place_of(slot));
            messages.belief(v, row.data());
            std::size_t best = 0;
            for (std::size_t x = 1; x < ex.labels(v); ++x)
                if (row[x] > row[best]) best = x;
            labels[v] = static_cast<std::int32_t>(best);
            messages.clamp(v, best);
        }
    }
};

bool propagate_beliefs(const Scores& g, const MessageSettings& settings,
                       bool (*interrupted)(), const BeliefResults& results) {
    Interruption patience(interrupted);
    FactorExample ex;
    Propagation<Sum> fast;
    Propagation<LogSum> safe;
    const auto finish = [&](auto& propagation, std::size_t e) {
        const double value = propagation.messages.vanished ? -kInfinity : propagation.bethe(ex);
        if (propagation.messages.wide) return false;
        results.log_partition[e] = value;
        if (results.unary && value > -kInfinity)
            propagation.write(g, ex, results.weight ? results.weight[e] : 1.0, results.unary,
                              results.tables);
        return true;
    };
    for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
        ex.open(g, e);
        if (!settings.logarithms) {
            const Ending ending = fast.run(g, ex, settings, patience);
            results.iterations[e] = ending.iterations;
            results.change[e] = ending.change;
            if (patience.stopped || (!fast.messages.wide && finish(fast, e))) continue;
        }
        const Ending ending = safe.run(g, ex, settings, patience);
        results.iterations[e] = ending.iterations;
        results.change[e] = ending.change;
        if (!patience.stopped) finish(safe, e);
    }
    *results.late = patience.late;
    return !patience.stopped;
}

bool propagate_best(const Scores& g, const MessageSettings& settings, bool (*interrupted)(),
                    const BeliefResults& results) {
    Interruption patience(interrupted);
    FactorExample ex;
    Propagation<MaxSum> best;
    for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
        ex.open(g, e);
        const Ending ending = best.run(g, ex, settings, patience);
        results.iterations[e] = ending.iterations;
        results.change[e] = ending.change;
        results.log_partition[e] = best.messages.vanished ? -kInfinity : 0.0;
        best.messages.damping = 0.0;
        if (best.messages.vanished || patience.stopped) continue;
        if (results.unary) best.rank(ex, results.unary);
        best.decode(ex, results.labels + g.variable_offsets[e]);
    }
    *results.late = patience.late;
    return !patience.stopped;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/string_view.h>

#include <stdexcept>
#include <string_view>

#include "frame_binding.hpp"

namespace chordal {

static Schedule schedule_of(std::string_view name) {
    if (name == "parallel") return Schedule::parallel;
    if (name == "sequential") return Schedule::sequential;
    if (name == "residual") return Schedule::residual;
    throw std::invalid_argument("schedule must be 'parallel', 'sequential' or 'residual'");
}

static const Binding binding([](nb::module_& m) {
    nb::class_<MessageSettings>(m, "MessageSettings", "How messages are passed, and how long.")
        .def("__init__",
             [](MessageSettings* self, std::string_view schedule, double damping, double tolerance,
                std::int64_t max_iter, bool logarithms, bool forbidden) {
                 new (self) MessageSettings{schedule_of(schedule), damping,    tolerance, max_iter,
                                            logarithms,            forbidden};
             },
             nb::kw_only(), nb::arg("schedule"), nb::arg("damping"), nb::arg("tolerance"),
             nb::arg("max_iter"), nb::arg("logarithms"), nb::arg("forbidden"));
    // Adds to the parts, if there are any.
    m.def(
        "loopy_bp_marginals",
        [](const BoundScores& scores, const MessageSettings& settings, const BoundParts* parts,
           Weight weight, Output<double> log_partition) {
            Iterations ended(scores.examples);
            const BeliefResults results{ended.n_iter.data(),
                                        ended.change.data(),
                                        log_partition.data(),
                                        data_of(weight),
                                        parts ? parts->unary : nullptr,
                                        parts ? parts->tables : nullptr,
                                        nullptr,
                                        &ended.late};
            bool done;
            {
                GilReleased release;
                done = CHORDAL_DISPATCH(propagate_beliefs(scores, settings, interrupted, results));
            }
            if (!done) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::arg("settings"), nb::arg("parts").none(), nb::kw_only(),
        nb::arg("weight").none(), nb::arg("log_partition"));
    // possible [examples] becomes -inf where nothing is allowed; beliefs [states] rank labels.
    m.def(
        "loopy_bp_labels",
        [](const BoundScores& scores, const MessageSettings& settings, Output<std::int32_t> labels,
           Output<double> possible, Output<double> beliefs) {
            Iterations ended(scores.examples);
            const BeliefResults results{ended.n_iter.data(), ended.change.data(), possible.data(),
                                        nullptr,             beliefs.data(),      nullptr,
                                        labels.data(),       &ended.late};
            bool done;
            {
                GilReleased release;
                done = CHORDAL_DISPATCH(propagate_best(scores, settings, interrupted, results));
            }
            if (!done) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::arg("settings"), nb::arg("labels"), nb::kw_only(),
        nb::arg("possible"), nb::arg("beliefs"));
});

}  // namespace chordal
#endif
