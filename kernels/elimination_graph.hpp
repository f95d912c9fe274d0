// The graph that variables are eliminated from: who shares a clique with whom, example by example.
// Variables with one label are left out of it: they cost nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "frame_binding.hpp"
#include "neighbourhood.hpp"

namespace chordal {

constexpr std::size_t kPart = 10'000;  // variables of the part that is tried first

// The neighbours of each variable of an example, numbered from 0; those with one label have none.
inline std::vector<Neighbours> neighbours_of(const Topology& g, std::size_t example) {
    const std::int64_t first = g.variable_offsets[example];
    std::vector<Neighbours> adjacent(g.variable_offsets[example + 1] - first);
    Neighbours scope;
    for (auto c = g.clique_offsets[example]; c < g.clique_offsets[example + 1]; ++c) {
        scope.clear();
        for (auto s = g.scope_offsets[c]; s < g.scope_offsets[c + 1]; ++s)
            if (g.labels(g.scopes[s]) > 1) scope.push_back(static_cast<std::int32_t>(g.scopes[s] - first));
        for (const auto a : scope)
            for (const auto b : scope)
                if (a != b) adjacent[a].push_back(b);
    }
    for (auto& all : adjacent) {
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
    }
    return adjacent;
}

// The variables that can be reached from one, nearest first; `most` of them, and then the
// rest of a neighbourhood.
inline Neighbours reached_from(const std::vector<Neighbours>& adjacent, std::int32_t start, std::size_t most,
                        Marks& seen) {
    Neighbours found{start};
    seen[start] = true;
    for (std::size_t k = 0; k < found.size() && found.size() < most; ++k)
        for (const auto a : adjacent[found[k]])
            if (!seen[a]) {
                seen[a] = true;
                found.push_back(a);
            }
    return found;
}

// The graph without all variables that are far from the middle one; nothing for a small graph.
inline std::vector<Neighbours> part_of(const std::vector<Neighbours>& adjacent) {
    if (adjacent.size() < 4 * kPart) return {};
    Marks seen(adjacent.size());
    reached_from(adjacent, static_cast<std::int32_t>(adjacent.size() / 2), kPart, seen);
    std::vector<Neighbours> part(adjacent.size());
    for (std::size_t v = 0; v < adjacent.size(); ++v)
        if (seen[v])
            std::copy_if(adjacent[v].begin(), adjacent[v].end(), std::back_inserter(part[v]),
                         [&](auto a) { return seen[a]; });
    return part;
}

}  // namespace chordal
