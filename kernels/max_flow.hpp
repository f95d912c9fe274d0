// Maximum flow and minimum cut on networks that come from pairwise models.
//
//   min over S ⊂ V of  Σ_{v ∉ S} max(t_v, 0) + Σ_{v ∈ S} max(-t_v, 0) + Σ_{i ∈ S, j ∉ S} r_ij
//
// Two trees of residual arcs grow from the terminals, S from the source (t_v > 0) and T from the sink
// (t_v < 0). Where they touch, flow is pushed along the path; nodes whose arc to their parent is full
// become orphans, which are adopted by another node of their tree or set free. The trees are kept
// from path to path: on images most paths are short and most of the trees survive.
//
//   grow:   p in S takes a free q if r_pq > 0; p in T if r_qp > 0
//   adopt:  an orphan looks for a neighbour of its tree that still has a way to the terminal and is
//           nearest to it; `stamp` says when a node's way and its distance were last known
//
// A node that is being scanned keeps its arc over an augmentation (current arc): if one before it
// should matter again, adoption puts the node back into the queue.
//
// Capacities are whole numbers: the caller scales its scores so that all of them together stay below
// 2^60. Then every augmentation is exact and fills an arc, sums cannot overflow, and the loop ends;
// what the scaling rounds off is less than what a sum of the scores in double precision would.
// kUnlimited is more than can ever flow.
//
// Layout: arcs of a node lie together (16 bytes each), a node has 32 bytes.
//
// Reference: Boykov and Kolmogorov (2004), An experimental comparison of min-cut/max-flow algorithms
// for energy minimization in vision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "conditionals.hpp"
#include "patience.hpp"

namespace chordal {

using Capacity = std::int64_t;
constexpr Capacity kUnlimited = Capacity{1} << 61;

// 2^k by which real capacities with this sum become whole numbers below 2^60.
inline double capacity_scale(double total) {
    return total > 0.0 ? std::ldexp(1.0, std::min(59 - std::ilogb(total), 1000)) : 1.0;
}

// The nodes are the variables of one example, the arcs both directions of its cliques of two.
class FlowNetwork {
public:
    FlowNetwork(const Frame& g, std::int64_t first_variable, std::int64_t last_variable,
                std::int64_t first_clique, std::int64_t last_clique) {
        enlarge(nodes_, static_cast<std::size_t>(last_variable - first_variable + 1), patience_);
        const auto ends = [&](std::int64_t c) { return g.scopes + g.scope_offsets[c]; };
        const auto is_edge = [&](std::int64_t c) {
            return g.scope_offsets[c + 1] - g.scope_offsets[c] == 2;
        };
        for (auto c = first_clique; c < last_clique; ++c, patience_.spend(8))
            if (is_edge(c))
                for (int side = 0; side < 2; ++side) ++nodes_[ends(c)[side] - first_variable].begin;
        std::int32_t sum = 0;
        for (Node& node : nodes_) node.begin = sum += node.begin;
        enlarge(arcs_, static_cast<std::size_t>(sum), patience_);
        enlarge(clique_, static_cast<std::size_t>(sum), patience_);
        for (auto c = last_clique; c-- > first_clique;) {  // from the back: begin becomes the first
            patience_.spend(kVisit);
            if (!is_edge(c)) continue;
            const auto i = static_cast<std::int32_t>(ends(c)[0] - first_variable);
            const auto j = static_cast<std::int32_t>(ends(c)[1] - first_variable);
            const std::int32_t a = --nodes_[i].begin, b = --nodes_[j].begin;
            arcs_[a] = {0, j, b};
            arcs_[b] = {0, i, a};
            clique_[a] = static_cast<std::int32_t>(c - first_clique);
            clique_[b] = ~clique_[a];
        }
    }

    std::int32_t nodes() const { return static_cast<std::int32_t>(nodes_.size()) - 1; }
    std::int32_t begin(std::int32_t v) const { return nodes_[v].begin; }
    std::int32_t end(std::int32_t v) const { return nodes_[v + 1].begin; }
    std::int32_t head(std::int32_t a) const { return arcs_[a].head; }
    // Clique k of the example for the arc from its first to its second variable, ~k back.
    std::int32_t clique(std::int32_t a) const { return clique_[a]; }

    // A node takes part: what flows to it from the source (> 0) or from it to the sink (< 0).
    void set_terminal(std::int32_t v, Capacity t) {
        Node& node = nodes_[v];
        node.terminal = t;
        node.parent = kNone;
        node.next = kNone;
        node.tree = kFree;
        node.stamp = 0;
        if (t == 0) return;
        node.tree = t > 0 ? kSource : kSink;
        node.parent = kTerminal;
        node.distance = 1;
        activate(v);
    }
    // Of an arc and the one back.
    void set_capacity(std::int32_t a, Capacity along, Capacity back) {
        arcs_[a].residual = along;
        arcs_[arcs_[a].sister].residual = back;
    }

    // Pushes all the flow there is, from what was set; throws Stopped after Ctrl-C.
    void solve() {
        time_ = 0;
        for (std::int32_t p; (p = next_active()) != kNone;) {
            for (std::int32_t a = begin(p); a < end(p);) {
                const std::int32_t bridge = grow(p, a);
                if (bridge == kNone) break;
                ++time_;
                augment(bridge);
                adopt();
                if (nodes_[p].tree == kFree) break;
            }
            patience_.spend(kVisit);
        }
    }

    // After solve: nodes that cannot reach the sink, so that ties go to the source.
    bool on_source_side(std::int32_t v) const { return nodes_[v].tree != kSink; }

private:
    static constexpr std::int32_t kNone = -1, kTerminal = -2, kOrphan = -3;
    static constexpr std::int32_t kFree = 0, kSource = 1, kSink = 2;
    static constexpr std::size_t kVisit = 16;  // work at a node and its arcs

    struct Node {
        Capacity terminal = 0;
        std::int32_t begin = 0;      // of its arcs
        std::int32_t parent = kNone;  // the arc to it, or kTerminal, kOrphan
        std::int32_t next = kNone;   // in the queue of active nodes; the last one's is itself
        std::int32_t stamp = 0;
        std::int32_t distance = 0;
        std::int32_t tree = kFree;
    };
    struct Arc {
        Capacity residual;
        std::int32_t head, sister;
    };

    // What can still flow from parent to child (S), or from child to parent (T), where `a` is the
    // child's arc to the parent.
    Capacity& towards_child(std::int32_t a, std::int32_t tree) {
        return tree == kSource ? arcs_[arcs_[a].sister].residual : arcs_[a].residual;
    }

    void activate(std::int32_t v) {
        if (nodes_[v].next != kNone) return;
        nodes_[v].next = v;
        if (last_ == kNone)
            first_ = v;
        else
            nodes_[last_].next = v;
        last_ = v;
    }

    // Takes the first one that is still in a tree out of the queue.
    std::int32_t next_active() {
        while (first_ != kNone) {
            const std::int32_t v = first_;
            Node& node = nodes_[v];
            if (node.next == v)
                first_ = last_ = kNone;
            else
                first_ = node.next;
            node.next = kNone;
            if (node.tree != kFree) return v;
        }
        return kNone;
    }

    // From arc `a` of p on: takes free neighbours; stops at the arc that leads from S to T.
    std::int32_t grow(std::int32_t p, std::int32_t& a) {
        const Node& from = nodes_[p];
        const bool source = from.tree == kSource;
        for (const std::int32_t last = end(p); a < last; ++a) {
            const Arc& arc = arcs_[a];
            if ((source ? arc.residual : arcs_[arc.sister].residual) == 0) continue;
            Node& to = nodes_[arc.head];
            if (to.tree == kFree) {
                to.tree = from.tree;
                adopt_by(to, arc.sister, from);
                activate(arc.head);
            } else if (to.tree != from.tree) {
                return source ? a : arc.sister;
            } else if (to.stamp <= from.stamp && to.distance > from.distance) {
                adopt_by(to, arc.sister, from);  // a shorter way, it seems
            }
        }
        return kNone;
    }

    void adopt_by(Node& child, std::int32_t arc, const Node& parent) {
        child.parent = arc;
        child.stamp = parent.stamp;
        child.distance = parent.distance + 1;
    }

    void augment(std::int32_t bridge) {
        const std::int32_t tail = arcs_[arcs_[bridge].sister].head, head = arcs_[bridge].head;
        Capacity most = arcs_[bridge].residual;
        most = std::min(most, way(tail, kSource, most));
        most = std::min(most, way(head, kSink, most));
        arcs_[bridge].residual -= most;
        arcs_[arcs_[bridge].sister].residual += most;
        push(tail, kSource, most);
        push(head, kSink, most);
        std::reverse(orphans_.begin(), orphans_.end());  // those near the terminals first
    }

    // The least that can flow between v and its terminal.
    Capacity way(std::int32_t v, std::int32_t tree, Capacity most) {
        std::size_t steps = 1;
        for (; nodes_[v].parent != kTerminal; ++steps) {
            const std::int32_t a = nodes_[v].parent;
            most = std::min(most, towards_child(a, tree));
            v = arcs_[a].head;
        }
        patience_.spend(2 * kVisit * steps);  // and back
        return std::min(most, std::abs(nodes_[v].terminal));
    }

    void push(std::int32_t v, std::int32_t tree, Capacity flow) {
        while (nodes_[v].parent != kTerminal) {
            const std::int32_t a = nodes_[v].parent, up = arcs_[a].head;
            Capacity& left = towards_child(a, tree);
            left -= flow;
            (tree == kSource ? arcs_[a] : arcs_[arcs_[a].sister]).residual += flow;
            if (left == 0) leave(v);
            v = up;
        }
        Capacity& left = nodes_[v].terminal;
        left += tree == kSource ? -flow : flow;
        if (left == 0) leave(v);
    }

    void leave(std::int32_t v) {
        nodes_[v].parent = kOrphan;
        orphans_.push_back(v);
    }

    void adopt() {
        for (std::size_t k = 0; k < orphans_.size(); ++k) adopt(orphans_[k]);
        orphans_.clear();
    }

    void adopt(std::int32_t v) {
        Node& orphan = nodes_[v];
        const std::int32_t tree = orphan.tree, first = begin(v), last = end(v);
        patience_.spend(kVisit * static_cast<std::size_t>(1 + last - first));
        std::int32_t best = kNone, nearest = std::numeric_limits<std::int32_t>::max();
        for (std::int32_t a = first; a < last; ++a) {
            const std::int32_t u = arcs_[a].head;
            if (nodes_[u].tree != tree || towards_child(a, tree) == 0) continue;
            const std::int32_t d = distance(u);
            if (d < nearest) {
                nearest = d;
                best = a;
            }
        }
        if (best != kNone) {
            orphan.parent = best;
            orphan.stamp = time_;
            orphan.distance = nearest + 1;
            return;
        }
        orphan.tree = kFree;
        orphan.parent = kNone;
        for (std::int32_t a = first; a < last; ++a) {
            const std::int32_t u = arcs_[a].head;
            Node& other = nodes_[u];
            if (other.tree != tree) continue;
            if (towards_child(a, tree) != 0) activate(u);
            if (other.parent >= 0 && arcs_[other.parent].head == v) leave(u);
        }
    }

    // How far u is from its terminal, by its parents; the largest number if the way ends at an
    // orphan. The nodes of a good way are marked, so that the next one stops there.
    std::int32_t distance(std::int32_t u) {
        std::int32_t d = 0, at = u;
        for (;;) {
            const Node& node = nodes_[at];
            if (node.stamp == time_) {
                d += node.distance;
                break;
            }
            if (node.parent == kTerminal) {
                ++d;
                break;
            }
            if (node.parent < 0) {
                patience_.spend(kVisit * static_cast<std::size_t>(d));
                return std::numeric_limits<std::int32_t>::max();
            }
            ++d;
            at = arcs_[node.parent].head;
        }
        std::int32_t here = d;
        for (at = u; nodes_[at].stamp != time_; at = arcs_[nodes_[at].parent].head) {
            nodes_[at].stamp = time_;
            nodes_[at].distance = here--;
            if (nodes_[at].parent == kTerminal) break;
        }
        patience_.spend(kVisit * static_cast<std::size_t>(d - here));
        return d;
    }

    std::vector<Node> nodes_;
    std::vector<Arc> arcs_;
    std::vector<std::int32_t> clique_;  // [arcs]
    std::vector<std::int32_t> orphans_;
    std::int32_t first_ = kNone, last_ = kNone, time_ = 0;
    CHORDAL_ISA::Patience patience_{interrupted};
};

}  // namespace chordal
