// In which order messages are updated, until none moves by more than the tolerance.
//
//   parallel     all at once, from the messages of the sweep before
//   sequential   variable by variable, forwards and backwards in turn, each from what is newest
//   residual     the message that would move most, then those that depend on it
//
// Where variables and cliques form no loop, one way up and one way down a tree are exact, whatever
// the schedule says. An iteration updates every message once (residual: as many messages as there are).
// Where the largest step does not fall for some iterations, damping is raised.
//
// References: Pearl (1988); Elidan, McGraw and Koller (2006), Residual belief propagation.
#pragma once

#include "messages.hpp"

namespace chordal {

enum class Schedule { parallel, sequential, residual };

struct MessageSettings {
    Schedule schedule;
    double damping, tolerance;
    std::int64_t most_iterations;
    bool logarithms;  // never in probabilities
    bool forbidden;   // some table has -inf
};

struct Ending {
    std::int64_t iterations = 0;
    double change = 0.0;
};

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// Places by the size of the step they ask for, largest first; ties go to the smallest place.
class Heap {
public:
    void open(Int size) {
        key_.resize(static_cast<std::size_t>(size));
        at_.resize(static_cast<std::size_t>(size));
        heap_.resize(static_cast<std::size_t>(size));
        size_ = size;
        for (Int k = 0; k < size; ++k) {
            key_[k] = -1.0;
            at_[k] = heap_[k] = k;
        }
    }
    Int top() const { return heap_[0]; }
    double key(Int place) const { return key_[place]; }
    void set(Int place, double key) {
        const bool up = key > key_[place];
        key_[place] = key;
        up ? rise(at_[place]) : sink(at_[place]);
    }

private:
    bool before(Int a, Int b) const { return key_[a] > key_[b] || (key_[a] == key_[b] && a < b); }
    void put(Int at, Int place) {
        heap_[at] = place;
        at_[place] = at;
    }
    void rise(Int at) {
        const Int place = heap_[at];
        for (; at > 0 && before(place, heap_[(at - 1) / 2]); at = (at - 1) / 2)
            put(at, heap_[(at - 1) / 2]);
        put(at, place);
    }
    void sink(Int at) {
        const Int place = heap_[at];
        for (Int child; (child = 2 * at + 1) < size_; at = child) {
            if (child + 1 < size_ && before(heap_[child + 1], heap_[child])) ++child;
            if (!before(heap_[child], place)) break;
            put(at, heap_[child]);
        }
        put(at, place);
    }

    Int size_ = 0;
    Scratch key_;
    ScratchOf<Int> at_, heap_;
};

// Halves the steps when the largest of an iteration has not fallen from one window to the next.
class Adaptation {
public:
    void note(double change, double& damping) {
        least_ = change < least_ ? change : least_;
        if (++iterations_ % kWindow != 0) return;
        if (!(least_ < kFalling * before_) && damping < kMost) damping = 0.5 + 0.5 * damping;
        before_ = least_;
        least_ = kInfinity;
    }

private:
    static constexpr Int kWindow = 50;
    static constexpr double kFalling = 0.98, kMost = 0.85;
    double least_ = kInfinity, before_ = kInfinity;
    Int iterations_ = 0;
};

// Calls sweep(how many there were) until a step is no larger than the tolerance.
template <class Ring, class Sweep>
Ending until_settled(Messages<Ring>& messages, const MessageSettings& settings,
                     const Interruption& patience, Sweep sweep) {
    Ending ending;
    Adaptation adaptation;
    while (ending.iterations < settings.most_iterations) {
        ending.change = sweep(ending.iterations);
        ++ending.iterations;
        if (ending.change <= settings.tolerance || messages.failed() || patience.over()) break;
        adaptation.note(ending.change, messages.damping);
    }
    return ending;
}

template <class Ring>
class Scheduler {
public:
    Ending run(Messages<Ring>& messages, const MessageSettings& settings, Interruption& patience) {
        const FactorExample& ex = messages.example();
        messages.start();
        messages.damping = 0.0;
        if (messages.failed() || ex.places == 0) return {};
        if (ex.forest) {
            sweep(messages, ex.order.data(), false, patience);
            sweep(messages, ex.order.data(), true, patience);
            return {1, 0.0};
        }
        messages.damping = settings.damping;
        if (settings.schedule == Schedule::residual) return by_residual(messages, settings, patience);
        return until_settled(messages, settings, patience, [&](Int sweeps) {
            return settings.schedule == Schedule::parallel
                       ? together(messages, patience)
                       : sweep(messages, nullptr, sweeps % 2 == 0, patience);
        });
    }

private:
    static bool finished(const Messages<Ring>& messages, const Interruption& patience) {
        return messages.failed() || patience.over();
    }
    static std::size_t work(const FactorExample& ex, Int c) {
        return static_cast<std::size_t>(64 * ex.order_of(c));
    }

    // In the given order or, without one, as variables are numbered; the largest step.
    static double sweep(Messages<Ring>& messages, const Int* order, bool forwards,
                        Interruption& patience) {
        const FactorExample& ex = messages.example();
        double furthest = 0.0;
        for (Int k = 0; k < ex.variables && !finished(messages, patience); ++k) {
            const Int i = forwards ? k : ex.variables - 1 - k, v = order ? order[i] : i;
            std::size_t done = 0;
            for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot) {
                const double step = messages.update(ex.place_of(slot));
                furthest = step > furthest ? step : furthest;
                done += work(ex, ex.clique(ex.place_of(slot)));
            }
            messages.cavities(v);
            patience.now(done);
        }
        return furthest;
    }

    static double together(Messages<Ring>& messages, Interruption& patience) {
        const FactorExample& ex = messages.example();
        double furthest = 0.0;
        for (Int p = 0; p < ex.places && !finished(messages, patience); ++p) {
            const double step = messages.update(p);
            furthest = step > furthest ? step : furthest;
            patience.now(work(ex, ex.clique(p)));
        }
        for (Int v = 0; v < ex.variables && !messages.failed() && !patience.stopped; ++v) messages.cavities(v);
        return furthest;
    }

    Ending by_residual(Messages<Ring>& messages, const MessageSettings& settings,
                       Interruption& patience) {
        const FactorExample& ex = messages.example();
        waiting_.resize(ex.message_cells);
        heap_.open(ex.places);
        for (Int p = 0; p < ex.places && !finished(messages, patience); ++p) offer(messages, p);
        Adaptation adaptation;
        Int updates = 0, round = ex.places;
        const Int most = settings.most_iterations * ex.places;
        while (updates < most && heap_.key(heap_.top()) > settings.tolerance &&
               !finished(messages, patience)) {
            const Int p = heap_.top(), v = ex.variable(p);
            const double* row = waiting_.data() + ex.in(p);
            for (std::size_t x = 0; x < ex.width(v); ++x) messages.in(p)[x] = row[x];
            messages.cavities(v);
            if (++updates == round) {
                adaptation.note(heap_.key(p), messages.damping);
                round += ex.places;
            }
            offer(messages, p);
            for (Int slot = ex.slots(v); slot < ex.slots(v) + ex.degree(v); ++slot) {
                const Int c = ex.clique(ex.place_of(slot));
                if (c == ex.clique(p)) continue;
                for (Int q = ex.places_of(c); q < ex.places_of(c + 1); ++q)
                    if (ex.variable(q) != v) offer(messages, q);
                patience.now(work(ex, c));
            }
        }
        return {(updates + ex.places - 1) / ex.places, heap_.key(heap_.top())};
    }
    // What place p would become.
    void offer(Messages<Ring>& messages, Int p) {
        const FactorExample& ex = messages.example();
        const std::size_t width = ex.width(ex.variable(p));
        double* row = waiting_.data() + ex.in(p);
        messages.make(p, width);
        for (std::size_t x = 0; x < width; ++x) row[x] = messages.in(p)[x];
        heap_.set(p, move_row<Ring>(row, messages.made(), width, messages.damping));
    }

    Scratch waiting_;
    Heap heap_;
};

}  // namespace chordal::CHORDAL_ISA
