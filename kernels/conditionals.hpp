// The scores of one variable's labels given all others, on cliques of any order.
//
//   s_v(l) = u_v(l) + Σ_{c ∋ v} table_c(l, y_{c \ v})
//
// A clique's table is read along one axis: from `base`, the cell of the other labels, in steps of
// `stride`. For each variable, `member` lists (clique, place in its scope) one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "frame_binding.hpp"
#include "patience.hpp"

namespace chordal {

// Which cliques each variable is in: a counting sort of all scopes.
class Members {
public:
    struct Member {
        std::int64_t clique;
        std::int64_t place;  // into scopes
    };

    explicit Members(const Frame& g) {
        CHORDAL_ISA::Listening listening;
        enlarge(begin_, g.variables + 1, listening);
        enlarge(member_, static_cast<std::size_t>(g.places()), listening);
        for (std::int64_t s = 0; s < g.scope_offsets[g.cliques]; ++s) ++begin_[g.scopes[s] + 1];
        for (std::size_t v = 0; v < g.variables; ++v) begin_[v + 1] += begin_[v];
        std::vector<std::int64_t> next(begin_.begin(), begin_.end() - 1);
        for (std::size_t c = 0; c < g.cliques; ++c)
            for (auto s = g.scope_offsets[c]; s < g.scope_offsets[c + 1]; ++s, listening.spend(16))
                member_[next[g.scopes[s]]++] = {static_cast<std::int64_t>(c), s};
    }
    const Member* begin(std::int64_t v) const { return member_.data() + begin_[v]; }
    const Member* end(std::int64_t v) const { return member_.data() + begin_[v + 1]; }

private:
    std::vector<std::int64_t> begin_;
    std::vector<Member> member_;
};

struct Axis {
    std::int64_t base;  // the cell of label 0 and the others' labels
    std::int64_t stride;
};

// Where a member's table is read, given the labels y of the other variables.
inline Axis axis_of(const Frame& g, const Members::Member& member, const std::int32_t* y) {
    std::int64_t base = 0, stride = 0;
    for (auto s = g.scope_offsets[member.clique]; s < g.scope_offsets[member.clique + 1]; ++s) {
        const std::int64_t v = g.scopes[s], n = g.labels(v);
        base = base * n + (s == member.place ? 0 : y[v]);
        stride = s == member.place ? 1 : stride * n;
    }
    return {g.table_offsets[g.table_of_clique[member.clique]] + base, stride};
}

}  // namespace chordal
