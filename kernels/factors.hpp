// The neighbourhoods of one example's variables.
//
// A *place* is one variable of one clique's scope, a *slot* the same thing counted from the variable:
// the slots of a variable follow each other, so do the places of a clique. Rows of labels are padded
// to a multiple of four.
#pragma once

#include <cstdint>

#include "frame.hpp"
#include "patience.hpp"
#include "simd.hpp"

namespace chordal::CHORDAL_ISA {

using Int = std::int64_t;

CHORDAL_INLINE std::size_t padded_of(Int n) { return padded(static_cast<std::size_t>(n)); }

// Patience that remembers how it ended.
class Interruption : public Patience {
public:
    using Patience::Patience;
    void now(std::size_t work) {
        if (spent(work)) (out_of_time() ? late : stopped) = true;
    }
    bool over() const { return stopped || late; }
    bool stopped = false;  // by Ctrl-C: no answer is wanted
    bool late = false;     // out of time: no more iterations, the answer is what there is
};

// One example: everything is counted from its own first variable, clique and place.
class FactorExample {
public:
    Int variables = 0, cliques = 0, places = 0;
    std::size_t state_cells = 0;    // padded labels of all variables
    std::size_t message_cells = 0;  // padded labels of all places
    Int most_labels = 1, largest_order = 0, largest_degree = 0;
    bool forest = false;
    ScratchOf<Int> order;  // [variables] breadth first; set by `search`

    void open(const Scores& g, std::size_t example) {
        g_ = &g;
        first_variable_ = g.variable_offsets[example];
        first_clique_ = g.clique_offsets[example];
        variables = g.variable_offsets[example + 1] - first_variable_;
        cliques = g.clique_offsets[example + 1] - first_clique_;
        first_place_ = g.scope_offsets[first_clique_];
        places = g.scope_offsets[first_clique_ + cliques] - first_place_;
        count_states();
        fill_slots();
        search();
    }

    // Of variables.
    std::size_t labels(Int v) const {
        return static_cast<std::size_t>(g_->labels(first_variable_ + v));
    }
    std::size_t width(Int v) const { return padded(labels(v)); }
    std::size_t state_at(Int v) const { return static_cast<std::size_t>(state_at_[v]); }
    Int first_state(Int v) const { return g_->state_offsets[first_variable_ + v]; }
    Int degree(Int v) const { return slot_begin_[v + 1] - slot_begin_[v]; }
    Int slots(Int v) const { return slot_begin_[v]; }
    Int place_of(Int slot) const { return place_of_slot_[slot]; }
    // Of cliques.
    Int places_of(Int c) const { return g_->scope_offsets[first_clique_ + c] - first_place_; }
    Int order_of(Int c) const { return places_of(c + 1) - places_of(c); }
    Int table(Int c) const { return g_->table_of_clique[first_clique_ + c]; }
    // Of places.
    Int variable(Int p) const { return g_->scopes[first_place_ + p] - first_variable_; }
    Int clique(Int p) const { return clique_of_place_[p]; }
    std::size_t in(Int p) const { return static_cast<std::size_t>(in_[p]); }    // by variable
    std::size_t out(Int p) const { return static_cast<std::size_t>(out_[p]); }  // by clique

private:
    void count_states() {
        state_at_.resize(variables + 1);
        slot_begin_.resize(variables + 1);
        state_cells = 0;
        most_labels = 1;
        for (Int v = 0; v < variables; ++v) {
            state_at_[v] = static_cast<Int>(state_cells);
            state_cells += width(v);
            most_labels = labels(v) > static_cast<std::size_t>(most_labels)
                              ? static_cast<Int>(labels(v))
                              : most_labels;
            slot_begin_[v] = 0;
        }
        slot_begin_[variables] = 0;
    }
    // A counting sort of places by their variable.
    void fill_slots() {
        clique_of_place_.resize(places);
        place_of_slot_.resize(places);
        in_.resize(places);
        out_.resize(places);
        largest_order = largest_degree = 0;
        message_cells = 0;
        for (Int c = 0; c < cliques; ++c) {
            if (order_of(c) > largest_order) largest_order = order_of(c);
            for (Int p = places_of(c); p < places_of(c + 1); ++p) {
                clique_of_place_[p] = c;
                out_[p] = static_cast<Int>(message_cells);
                message_cells += width(variable(p));
                ++slot_begin_[variable(p) + 1];
            }
        }
        for (Int v = 0; v < variables; ++v) {
            if (slot_begin_[v + 1] > largest_degree) largest_degree = slot_begin_[v + 1];
            slot_begin_[v + 1] += slot_begin_[v];
        }
        next_.resize(variables + 1);
        for (Int v = 0; v < variables; ++v) next_[v] = slot_begin_[v];
        for (Int p = 0; p < places; ++p) place_of_slot_[next_[variable(p)]++] = p;
        Int at = 0;
        for (Int slot = 0; slot < places; ++slot) {
            in_[place_of_slot_[slot]] = at;
            at += static_cast<Int>(width(variable(place_of_slot_[slot])));
        }
    }
    // Breadth first through variables and cliques; without a loop, links = nodes - components.
    void search() {
        forest = false;
        if (places >= variables + cliques && places > 0) return;
        order.resize(variables);
        next_.resize(variables + cliques + 1);
        for (Int k = 0; k < variables + cliques; ++k) next_[k] = 0;  // met?
        Int components = 0, met = 0, done = 0;
        for (Int root = 0; root < variables; ++root) {
            if (next_[root]) continue;
            ++components;
            next_[root] = 1;
            order[met++] = root;
            for (; done < met; ++done) {
                const Int v = order[done];
                for (Int slot = slots(v); slot < slots(v) + degree(v); ++slot) {
                    const Int c = clique(place_of(slot));
                    if (next_[variables + c]) continue;
                    next_[variables + c] = 1;
                    for (Int p = places_of(c); p < places_of(c + 1); ++p) {
                        if (next_[variable(p)]) continue;
                        next_[variable(p)] = 1;
                        order[met++] = variable(p);
                    }
                }
            }
        }
        forest = places == variables + cliques - components;
    }

    const Scores* g_ = nullptr;
    Int first_variable_ = 0, first_clique_ = 0, first_place_ = 0;
    ScratchOf<Int> state_at_, slot_begin_, clique_of_place_, place_of_slot_, in_, out_, next_;
};

}  // namespace chordal::CHORDAL_ISA
