// How Python hands a batch of models to a kernel: bound objects that keep their arrays alive. Each is
// made once (scores: once a call), and a kernel takes it in place of the arrays.
#pragma once

#include <nanobind/stl/optional.h>

#include <optional>
#include <vector>

#include "binding.hpp"
#include "frame.hpp"

namespace chordal {

using Indices = std::vector<std::int64_t>;
using Weight = std::optional<Input<double>>;  // [examples]; none: 1 everywhere

inline const double* data_of(const Weight& array) { return array ? array->data() : nullptr; }

// In Python: Topology, Frame, Scores, Parts. `held` is what the pointers lead into.
struct BoundTopology : Topology {
    Input<std::int64_t> held[5];
};
struct BoundFrame : Frame {
    nb::object topology;
    Input<std::int64_t> held_offsets;
    Input<std::int32_t> held_tables;
};
struct BoundScores : Scores {
    nb::object frame;
    Input<double> held[2];
};
struct BoundParts : Parts {
    nb::object frame;
    Output<double> held[2];
};

// In Python: Incidence.
struct Incidence {
    Indices offsets, cliques;

    operator CliquesOf() const { return {offsets.data(), cliques.data()}; }
};

// How the iterations of each example ended. In Python: Iterations.
struct Iterations {
    Indices n_iter;              // [examples]
    std::vector<double> change;  // [examples] what was to fall below the tolerance
    bool late = false;           // the time limit ended them

    explicit Iterations(std::size_t examples) : n_iter(examples), change(examples) {}
};

// Calls improve(), which leaves something useful behind whenever it is out of time.
template <class F>
void ended_by_time(Iterations& done, F improve) {
    try {
        improve();
    } catch (const Stopped&) {
        if (!out_of_time()) throw;
        done.late = true;
    }
}

}  // namespace chordal
