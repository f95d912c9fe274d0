// Tree-reweighted belief propagation: marginals, and an upper bound on log Z.
//
// Forests T with probability 1 / K each contain clique c with probability ρ_c. Messages are those of
// messages.hpp, reweighted. For *any* messages m,
//
//   a_v(x_v) = θ_v(x_v) + Σ_{c ∋ v} ρ_c log m_{c→v}(x_v)
//   a_c(x_c) = θ_c(x_c) / ρ_c - Σ_{v ∈ c} log m_{c→v}(x_v)
//
// satisfy Σ_v a_v + Σ_c ρ_c a_c = θ: the model is the mean of the forests' models (a_v and a_c of their
// cliques), and log Z is convex in the scores,
//
//   log Z <= 1/K Σ_T log Z_T,
//
// each from one pass up its trees. The bound therefore holds whether or not messages have settled;
// where they have, it is the best that these forests give. Labels that messages prove impossible
// have a_v = -inf.
//
// Reference: Wainwright, Jaakkola and Willsky (2005), A new class of upper bounds on the log partition
// function.
#include "schedules.hpp"

namespace chordal {

struct TreeReweightedInput {
    const double* rho;            // [cliques]
    const std::int64_t* forests;  // [examples] how many
    const std::uint8_t* flags;    // for each example and forest, a flag per clique
};

struct TreeReweightedResults {
    double* log_partition;  // [examples]
    const double* weight;
    double *unary, *tables;  // marginals are added here, or null
    std::int64_t* iterations;
    double* change;
    bool* late;
};

CHORDAL_BOTH_ISAS(bool reweight_trees(const Scores&, const MessageSettings&,
                                      const TreeReweightedInput&, bool (*interrupted)(),
                                      const TreeReweightedResults&);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// log Z of the cliques of one forest, by one pass up; spoils the n of the messages.
class ForestPass {
public:
    double log_partition(Messages<LogSum>& messages, const std::uint8_t* member) {
        const FactorExample& ex = messages.example();
        Listening listening;
        search(ex, member);
        up_.resize(ex.state_cells);
        row_.resize(padded_of(ex.most_labels));
        double value = 0.0;
        for (Int v = 0; v < ex.variables; ++v) {
            listening.spend(64 * ex.width(v));
            value += messages.belief(v, up_.data() + ex.state_at(v));
            if (messages.vanished) return -kInfinity;
        }
        for (Int k = found_; k-- > 0;) {
            const Int p = parent_[k], c = ex.clique(p), v = ex.variable(p);
            listening.spend(8 * ex.width(v) * ex.width(v));
            for (Int q = ex.places_of(c); q < ex.places_of(c + 1); ++q) {
                if (q == p) continue;
                const std::size_t width = ex.width(ex.variable(q));
                const double* up = up_.data() + ex.state_at(ex.variable(q));
                for (std::size_t x = 0; x < width; ++x) messages.out(q)[x] = up[x];
                messages.leave_out(messages.out(q), q, width);
            }
            messages.pull(p, row_.data());
            messages.leave_out(row_.data(), p, ex.width(v));
            LogSum::times(up_.data() + ex.state_at(v), row_.data(), ex.width(v));
        }
        for (Int k = 0; k < roots_; ++k)
            value += LogSum::total(up_.data() + ex.state_at(root_[k]), ex.width(root_[k]));
        return value;
    }

private:
    // Cliques of the forest breadth first, each by the place through which it was found.
    void search(const FactorExample& ex, const std::uint8_t* member) {
        const auto variables = static_cast<std::size_t>(ex.variables);
        met_.resize(variables);
        queue_.resize(variables);
        root_.resize(variables);
        parent_.resize(static_cast<std::size_t>(ex.cliques));
        through_.resize(variables);
        for (Int v = 0; v < ex.variables; ++v) met_[v] = false;
        found_ = roots_ = 0;
        Int size = 0, done = 0;
        for (Int root = 0; root < ex.variables; ++root) {
            if (met_[root]) continue;
            met_[root] = true;
            root_[roots_++] = root;
            through_[root] = -1;
            queue_[size++] = root;
            for (; done < size; ++done) {
                const Int v = queue_[done];
                for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot) {
                    const Int p = ex.place_of(slot), c = ex.clique(p);
                    if (!member[c] || c == through_[v]) continue;
                    parent_[found_++] = p;
                    for (Int q = ex.places_of(c); q < ex.places_of(c + 1); ++q) {
                        if (q == p) continue;
                        met_[ex.variable(q)] = true;
                        through_[ex.variable(q)] = c;
                        queue_[size++] = ex.variable(q);
                    }
                }
            }
        }
    }

    Int found_ = 0, roots_ = 0;
    Scratch up_, row_;
    ScratchOf<bool> met_;
    ScratchOf<Int> queue_, root_, parent_, through_;
};

// Marginals of variables and cliques, times the weight.
static void add_beliefs(const Scores& g, Messages<LogSum>& messages, double weight, double* row,
                        const TreeReweightedResults& results) {
    const FactorExample& ex = messages.example();
    Listening listening;
    for (Int v = 0; v < ex.variables; ++v) {
        listening.spend(64 * ex.width(v));
        messages.belief(v, row);
        LogSum::to_probabilities(row, ex.width(v));
        for (std::size_t x = 0; x < ex.labels(v); ++x)
            results.unary[ex.first_state(v) + static_cast<Int>(x)] += weight * row[x];
    }
    for (Int c = 0; c < ex.cliques; ++c)
        messages.add_clique(c, 0.0, weight,  // logarithms need no total
                            results.tables + g.table_offsets[ex.table(c)]);
}

bool reweight_trees(const Scores& g, const MessageSettings& settings,
                    const TreeReweightedInput& input, bool (*interrupted)(),
                    const TreeReweightedResults& results) {
    Interruption patience(interrupted);
    FactorExample ex;
    RingTables<LogSum> tables;
    tables.open(g);
    Messages<LogSum> messages;
    Scheduler<LogSum> scheduler;
    ForestPass pass;
    Scratch row;
    const std::uint8_t* flags = input.flags;
    for (std::size_t e = 0; e < g.examples && !patience.stopped; ++e) {
        ex.open(g, e);
        messages.rho = input.rho + g.clique_offsets[e];
        for (Int c = 0; c < ex.cliques; ++c) tables.need(ex.table(c));
        messages.open(g, ex, tables);
        double least = 1.0;  // tables enter to the power 1 / ρ
        for (Int c = 0; c < ex.cliques; ++c) least = messages.rho[c] < least ? messages.rho[c] : least;
        messages.set_floor(settings.forbidden && !ex.forest ? reach_of(g, ex) / least : 0.0);
        const Ending ending = scheduler.run(messages, settings, patience);
        results.iterations[e] = ending.iterations;
        results.change[e] = ending.change;
        row.resize(padded_of(ex.most_labels));
        if (results.unary && !messages.vanished && !patience.stopped)
            add_beliefs(g, messages, results.weight ? results.weight[e] : 1.0, row.data(), results);
        double bound = 0.0;
        for (Int k = 0; k < input.forests[e]; ++k, flags += ex.cliques)
            if (!messages.vanished && !patience.stopped) {
                bound += pass.log_partition(messages, flags);
                patience.now(static_cast<std::size_t>(64 * ex.places));
            }
        results.log_partition[e] =
            messages.vanished ? -kInfinity : bound / static_cast<double>(input.forests[e]);
    }
    *results.late = patience.late;
    return !patience.stopped;
}

}  // namespace chordal::CHORDAL_ISA

#ifndef CHORDAL_ISA_V3
#include <nanobind/stl/optional.h>

#include <optional>

#include "spanning_forests.hpp"

namespace chordal {

static const Binding binding([](nb::module_& m) {
    // Adds to the parts, if there are any. The schedule is sequential, in logarithms.
    m.def(
        "tree_reweighted_marginals",
        [](const BoundScores& scores, const SpanningForests& forests,
           const MessageSettings& settings, const BoundParts* parts, Weight weight,
           Output<double> log_partition) {
            Iterations ended(scores.examples);
            const TreeReweightedInput input{forests.appearance.data(), forests.n_forests.data(),
                                            forests.flags.data()};
            const TreeReweightedResults results{log_partition.data(),
                                                data_of(weight),
                                                parts ? parts->unary : nullptr,
                                                parts ? parts->tables : nullptr,
                                                ended.n_iter.data(),
                                                ended.change.data(),
                                                &ended.late};
            bool done;
            {
                GilReleased release;
                done = CHORDAL_DISPATCH(
                    reweight_trees(scores, settings, input, interrupted, results));
            }
            if (!done) throw Stopped{};
            return ended;
        },
        nb::arg("scores"), nb::arg("forests"), nb::arg("settings"), nb::arg("parts").none(),
        nb::kw_only(), nb::arg("weight").none(), nb::arg("log_partition"));
});

}  // namespace chordal
#endif
