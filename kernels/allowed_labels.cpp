// A labelling that breaks no constraint (score of -inf), by search with propagation.
//
// Labels that some clique's table supports with no labels left to its other variables are struck out
// (generalised arc consistency), first everywhere and then after each decision. A decision gives a
// variable the label of the highest unary score it has left; of the next few undecided variables,
// one with the fewest labels is taken. On a contradiction the last decision is undone and its label
// struck out instead. Without a decision left to undo, there is no allowed labelling: that is proved.
// After `max_failures` contradictions the question is left open.
//
// On trees, and wherever constraints only ask for labels to be alike, no decision is ever undone.
//
// Reference: Mackworth (1977), Consistency in networks of relations.
#include <algorithm>
#include <limits>

#include "label_scores.hpp"
#include "patience.hpp"

namespace chordal {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kAhead = 64;  // undecided variables to choose among
constexpr std::size_t kProbes = 16, kLeastProbing = std::size_t{1} << 20;

class Search {
public:
    Search(const Frame& g, const CliquesOf& of, const double* unary, const double* tables)
        : g_(g), of_(of), unary_(unary), tables_(tables), left_(g.variables),
          open_(g.state_offsets[g.variables]), hard_(g.cliques), queued_(g.cliques, 0) {
        std::vector<std::uint8_t> forbids(g.n_tables);
        for (std::size_t k = 0; k < g.n_tables; ++k) {
            const double* end = tables + g.table_offsets[k + 1];
            forbids[k] = std::find(tables + g.table_offsets[k], end, kForbidden) != end;
            patience_.spend(static_cast<std::size_t>(g.table_offsets[k + 1] - g.table_offsets[k]));
        }
        for (std::size_t c = 0; c < g.cliques; ++c) hard_[c] = forbids[g.table_of_clique[c]];
    }

    // 1: found, 0: there is none, -1: not decided.
    int run(std::int64_t first, std::int64_t last, const std::int64_t* cliques, std::int64_t failures,
            std::int32_t* labels) {
        decisions_.clear();
        bool sound = start(first, last, cliques);
        for (std::int64_t from = first;;) {
            while (!sound) {
                if (decisions_.empty()) return 0;
                if (failures-- == 0) return -1;
                const Decision last_one = decisions_.back();
                decisions_.pop_back();
                undo(last_one.trail);
                from = last_one.from;
                sound = propagate(strike(last_one.variable, last_one.label));
            }
            patience_.spend(64);
            while (from < last && left_[from] == 1) ++from;
            if (from == last) break;
            const std::int64_t v = fewest(from, last), label = best(v);
            decisions_.push_back({v, label, from, trail_.size()});
            sound = settle(v, label);
        }
        for (auto v = first; v < last; ++v) labels[v] = static_cast<std::int32_t>(best(v));
        return 1;
    }

    // Without a decision that stays: the score of every label that is struck out becomes -inf. Out of time,
    // of those that are so far; false then.
    bool exclude(std::int64_t first, std::int64_t last, const std::int64_t* cliques, double* unary) {
        bool done = true;
        try {
            if (start(first, last, cliques)) probe(first, last, cliques);
        } catch (const Stopped&) {
            if (!out_of_time()) throw;
            undo(std::min(firm_, trail_.size()));
            done = false;
        }
        for (auto s = g_.state_offsets[first]; s < g_.state_offsets[last]; ++s)
            if (!open_[s]) unary[s] = kForbidden;
        return done;
    }

private:
    // All labels that have a score, and what propagation leaves of them; false: nothing.
    bool start(std::int64_t first, std::int64_t last, const std::int64_t* cliques) {
        trail_.clear();
        firm_ = kAll;
        bool sound = true;
        for (auto v = first; v < last; ++v) {
            patience_.spend(static_cast<std::size_t>(g_.labels(v)) + 4);
            left_[v] = 0;
            for (auto s = g_.state_offsets[v]; s < g_.state_offsets[v + 1]; ++s)
                left_[v] += open_[s] = unary_[s] != kForbidden;
            sound &= left_[v] > 0;
        }
        for (auto c = cliques[0]; c < cliques[1]; ++c) enqueue(c);
        return propagate(sound);
    }

    // Strikes out labels whose choice alone is a contradiction, as long as the work is small: looks at
    // cells of tables, by what all tables together have.
    void probe(std::int64_t first, std::int64_t last, const std::int64_t* cliques) {
        std::size_t size = 0;
        for (auto c = cliques[0]; c < cliques[1]; ++c)
            if (hard_[c]) size += cells(c);
        const std::size_t most = looks_ + std::max(kProbes * size, kLeastProbing);
        for (bool changed = true; changed;) {
            changed = false;
            for (auto v = first; v < last; ++v)
                for (std::int64_t l = 0; l < g_.labels(v) && left_[v] > 1; ++l) {
                    if (!open_[g_.state_offsets[v] + l]) continue;
                    if (looks_ > most) return;
                    firm_ = trail_.size();
                    const bool sound = settle(v, l);
                    undo(firm_);
                    firm_ = kAll;
                    if (sound) continue;
                    changed = true;
                    if (!propagate(strike(v, l))) return;
                }
        }
    }
    // Leaves this label alone to the variable.
    bool settle(std::int64_t v, std::int64_t label) {
        for (std::int64_t l = 0; l < g_.labels(v); ++l)
            if (l != label && open_[g_.state_offsets[v] + l]) strike(v, l);
        return propagate(true);
    }
    std::size_t cells(std::int64_t c) const {
        const auto k = g_.table_of_clique[c];
        return static_cast<std::size_t>(g_.table_offsets[k + 1] - g_.table_offsets[k]);
    }

    struct Decision {
        std::int64_t variable, label, from;
        std::size_t trail;
    };

    void enqueue(std::int64_t c) {
        if (!hard_[c] || queued_[c]) return;
        queued_[c] = 1;
        queue_.push_back(c);
    }

    // Strikes a label out; false if the variable has none left.
    bool strike(std::int64_t v, std::int64_t l) {
        open_[g_.state_offsets[v] + l] = 0;
        trail_.push_back({v, l});
        for (auto c = of_.begin(v); c != of_.end(v); ++c) enqueue(*c);
        return --left_[v] > 0;
    }

    void undo(std::size_t size) {
        for (; trail_.size() > size; trail_.pop_back()) {
            open_[g_.state_offsets[trail_.back().first] + trail_.back().second] = 1;
            ++left_[trail_.back().first];
        }
    }

    // Empties the queue, also where a contradiction is known already.
    bool propagate(bool sound) {
        while (!queue_.empty()) {
            const std::int64_t c = queue_.back();
            queue_.pop_back();
            queued_[c] = 0;
            sound = sound && revise(c);
        }
        return sound;
    }

    // Strikes out what no cell of the clique's table supports any more.
    bool revise(std::int64_t c) {
        const auto begin = g_.scope_offsets[c], end = g_.scope_offsets[c + 1];
        const double* table = tables_ + g_.table_offsets[g_.table_of_clique[c]];
        const auto order = static_cast<std::size_t>(end - begin);
        looks_ += cells(c);
        patience_.spend(64 + 2 * cells(c));
        place_.assign(order, 0);
        base_.assign(order + 1, 0);
        for (std::size_t k = 0; k < order; ++k)
            base_[k + 1] = base_[k] + g_.labels(g_.scopes[begin + k]);
        supported_.assign(base_[order], 0);
        for (std::int64_t cell = 0;; ++cell) {
            bool holds = table[cell] != kForbidden;
            for (std::size_t k = 0; holds && k < order; ++k)
                holds = open_[g_.state_offsets[g_.scopes[begin + k]] + place_[k]];
            for (std::size_t k = 0; holds && k < order; ++k) supported_[base_[k] + place_[k]] = 1;
            std::size_t k = order;
            while (k-- > 0) {  // the next cell
                if (++place_[k] < base_[k + 1] - base_[k]) break;
                place_[k] = 0;
            }
            if (k == std::numeric_limits<std::size_t>::max()) break;
        }
        for (std::size_t k = 0; k < order; ++k) {
            const std::int64_t v = g_.scopes[begin + k];
            for (std::int64_t l = 0; l < g_.labels(v); ++l)
                if (open_[g_.state_offsets[v] + l] && !supported_[base_[k] + l] && !strike(v, l))
                    return false;
        }
        return true;
    }

    std::int64_t fewest(std::int64_t from, std::int64_t last) const {
        std::int64_t choice = from, undecided = 0;
        for (auto v = from; v < last && undecided < kAhead; ++v) {
            if (left_[v] == 1) continue;
            ++undecided;
            if (left_[v] < left_[choice]) choice = v;
        }
        return choice;
    }

    std::int64_t best(std::int64_t v) const {
        const auto s = g_.state_offsets[v];
        std::int64_t choice = -1;
        for (std::int64_t l = 0; l < g_.labels(v); ++l)
            if (open_[s + l] && (choice < 0 || unary_[s + l] > unary_[s + choice])) choice = l;
        return choice;
    }

    const Frame& g_;
    const CliquesOf of_;
    const double* unary_;
    const double* tables_;
    std::vector<std::int64_t> left_;                          // [variables] labels
    std::vector<std::uint8_t> open_;                          // [states]
    std::vector<std::uint8_t> hard_, queued_;                 // [cliques]
    std::vector<std::int64_t> queue_;
    std::vector<std::pair<std::int64_t, std::int64_t>> trail_;  // labels struck out
    std::vector<Decision> decisions_;
    std::vector<std::int64_t> place_, base_;
    std::vector<std::uint8_t> supported_;
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    std::size_t looks_ = 0;
    std::size_t firm_ = kAll;  // what is on the trail beyond this is only tried
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace

static const Binding binding([](nb::module_& m) {
    // outcome [examples]: 1 where a labelling is looked for; becomes 1 found, 0 none exists, -1 open (also
    // when time is over).
    m.def(
        "allowed_labels",
        [](const BoundScores& g, const Incidence& incidence, std::int64_t max_failures,
           Output<std::int32_t> outcome, Output<std::int32_t> labels) {
            GilReleased release;
            std::size_t e = 0;
            try {
                Search search(g, incidence, g.unary, g.tables);
                for (; e < g.examples; ++e)
                    if (outcome.data()[e])
                        outcome.data()[e] = search.run(g.variable_offsets[e], g.variable_offsets[e + 1],
                                                       g.clique_offsets + e, max_failures, labels.data());
            } catch (const Stopped&) {
                if (!out_of_time()) throw;
                for (; e < g.examples; ++e) outcome.data()[e] = outcome.data()[e] ? -1 : 0;
            }
        },
        nb::arg("scores"), nb::arg("incidence"), nb::arg("max_failures"), nb::kw_only(),
        nb::arg("outcome"), nb::arg("labels"));
    // unary [states], a copy of the scores', becomes -inf where propagation alone excludes a label; all
    // of some variable's do where nothing is allowed. When time is over, what is excluded so far.
    m.def(
        "exclude_labels",
        [](const BoundScores& g, const Incidence& incidence, Output<double> unary) {
            GilReleased release;
            bool in_time = true;
            try {
                Search search(g, incidence, g.unary, g.tables);
                for (std::size_t e = 0; e < g.examples && in_time; ++e)
                    in_time = search.exclude(g.variable_offsets[e], g.variable_offsets[e + 1],
                                             g.clique_offsets + e, unary.data());
            } catch (const Stopped&) {
                if (!out_of_time()) throw;
            }
        },
        nb::arg("scores"), nb::arg("incidence"), nb::kw_only(), nb::arg("unary"));
});

}  // namespace chordal
