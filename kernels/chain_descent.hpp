// Stochastic gradient descent on chains: every sequence takes the weights one step down its loss.
//
// With φ(y) the features of a labelling y, y* the gold one, s(y) = w·φ(y) and c(y) a sum over positions of
// cost[y*_t, y_t] (over T, if normalised), the loss of an example with weight ω is
//
//   ℓ = ω (softmax_τ over y of [s(y) + c(y)] − s(y*)),   τ = 1: log Σ exp,   τ = 0: max,
//
// and its derivative g = ω (E φ(y) − φ(y*)), E an expectation (τ = 1) or the best labelling (τ = 0).
// Step t = 0, 1, … with k = t + first, v = w − centre and the velocity m:
//
//   η = 1 / (1/η₀ + b k^p)          d = 1 − ηλ
//   m ← μ m − η g(v)                v ← d v + m              then, if ‖v‖ > r:  v ← v r/‖v‖
//
// Cells that are exempt have d = 1. Looking ahead, g is taken at d v + μ m. Averages: A = Σ v over the steps t ≥ `average_after`.
//
// A step costs what its example costs, since what happens to all weights alike is kept in few numbers:
//
//   v = D z − q M u      m = M u      A = C z + B u + R
//   all weights:  D ← d D,  M ← μ M,  q ← (d/μ) q − 1
//   one gradient: z −= η g (1 + q)/D,  u −= η g/M,  R += η g (C (1 + q)/D + B/M);   then C += D,  B −= q M
//
// An exempt cell gets back what the decay took: z += (1 − d) v/D and R −= C (1 − d) v/D, v that before the step.
//
// q = μ/(d − μ) would stay as it is, were d constant: then z is where v comes to rest when no more gradient
// comes. Hazards: z = v/D and u = m/M grow as D and M shrink, A is then a difference of large numbers, and
// q drifts. Each is cured by writing v, m and A out (`close`) and beginning anew (`open`).
//
// References: Bottou (2012), Stochastic gradient descent tricks; Shalev-Shwartz et al. (2007), Pegasos;
// Ratliff, Bagnell and Zinkevich (2007), (Online) subgradient methods for structured prediction; Polyak
// and Juditsky (1992), Acceleration of stochastic approximation by averaging.
#pragma once

#include <cmath>

#include "chain_difference.hpp"

namespace chordal {

struct Descent {
    double* z;            // [cells] v, before and after a visit
    double* u;            // [cells] m; null without momentum
    double* R;            // [cells] A; null without averaging
    const double* fixed;  // [cells] the centre, or null
    const double* cost;   // [labels, labels] or null
    double lambda, inverse_rate, growth, power, first, momentum, radius, average_after;
    bool look_ahead, soft, normalised;
    double steps, loss, averaged;  // counted on
    const std::int64_t* exempt;    // [n_exempt] cells without decay, few
    std::size_t n_exempt;
};

// The files chain_max.cpp and chain_sum.cpp define what is only called here.
CHORDAL_BOTH_ISAS(
    Outcome best_labelling(const ChainBatch&, bool (*interrupted)(), double* score,
                           std::int32_t* labels);
    Outcome marginals(const ChainBatch&, Domain, bool (*interrupted)(), const double* weight,
                      double* log_partition, double* unary, double* tables);)

}  // namespace chordal

namespace chordal::CHORDAL_ISA {

// The representation of v, m and A.
class LazyWeights {
public:
    LazyWeights(Descent& s, std::size_t cells) : s_(s), cells_(cells) {
        smallest_M_ = s.u && s.R ? 1e-9 : 1e-100;
        exempt_.resize(s.n_exempt + 1);
    }
    // v, m, A → z, u, R; d is that of the step to come.
    void open(double d) {
        const double mu = s_.momentum;
        D = M = 1.0;
        C = B = 0.0;
        q = s_.u && d - mu > 1e-3 ? mu / (d - mu) : 0.0;
        largest_q_ = 1e3 * (1.0 + std::fabs(q));
        if (s_.u)
            for (std::size_t c = 0; c < cells_; ++c) s_.z[c] += q * s_.u[c];
        norm2 = 0.0;
        if (s_.radius < kInfinity)
            for (std::size_t c = 0; c < cells_; ++c) norm2 += s_.z[c] * s_.z[c];
    }
    // z, u, R → v, m, A.
    void close() {
        if (s_.R && s_.u) {
            for (std::size_t c = 0; c < cells_; ++c) s_.R[c] += C * s_.z[c] + B * s_.u[c];
        } else if (s_.R) {
            for (std::size_t c = 0; c < cells_; ++c) s_.R[c] += C * s_.z[c];
        }
        for (std::size_t c = 0; c < cells_; ++c) s_.z[c] *= D;
        if (!s_.u) return;
        for (std::size_t c = 0; c < cells_; ++c) {
            s_.u[c] *= M;
            s_.z[c] -= q * s_.u[c];
        }
    }
    // Decay and momentum carry all weights.
    void advance(double d) {
        for (std::size_t i = 0; i < s_.n_exempt; ++i) {
            const std::int64_t c = s_.exempt[i];
            exempt_[i] = (1.0 - d) * (D * s_.z[c] - (s_.u ? q * M * s_.u[c] : 0.0));
        }
        D *= d;
        if (s_.u) {
            M *= s_.momentum;
            q = d / s_.momentum * q - 1.0;
        }
        if (std::fabs(D) < 1e-6 || M < smallest_M_ || std::fabs(q) > largest_q_) {
            close();
            open(d);
        }
        for (std::size_t i = 0; i < s_.n_exempt; ++i) {
            const std::int64_t c = s_.exempt[i];
            s_.z[c] += exempt_[i] / D;
            if (s_.R) s_.R[c] -= C * exempt_[i] / D;
        }
    }
    void project() {
        const double length = std::fabs(D) * std::sqrt(norm2);
        if (length > s_.radius) D *= s_.radius / length;
    }
    void average() {
        C += D;
        B -= q * M;
        s_.averaged += 1.0;
    }

    double D = 1.0, M = 1.0, q = 0.0, C = 0.0, B = 0.0;
    double norm2 = 0.0;  // ‖z‖²; kept where there is a radius

private:
    Descent& s_;
    std::size_t cells_;
    Scratch exempt_;
    double smallest_M_, largest_q_ = 0.0;
};

// Adds multiples of a derivative to z and to those of u and R that are there, on live cells.
class Kick {
public:
    Kick(const OnlineChains& x, const Descent& s, LazyWeights& lazy)
        : x_(x), lazy_(lazy), to_{s.z, s.u ? s.u : s.R, s.R}, count_(1 + !!s.u + !!s.R),
          velocity_(s.u), normed_(s.radius < kInfinity) {
        for (std::size_t bits = 0; bits < 16; ++bits)
            for (std::size_t k = 0; k < 4; ++k) mask_[bits * 4 + k] = bits >> k & 1 ? 1.0 : 0.0;
    }
    // By −size · derivative.
    void aim(double size) {
        const double z = -size * (1.0 + lazy_.q) / lazy_.D, u = -size / lazy_.M;
        const double R = -(lazy_.C * z + lazy_.B * (velocity_ ? u : 0.0));
        scale_[0] = z;
        scale_[1] = velocity_ ? u : R;
        scale_[2] = R;
    }
    void rows(const OnlineRows& rows, std::size_t first, std::size_t count, const double* parts) {
        const std::size_t n = rows.outputs, width = (n + rows.unit - 1) / rows.unit * rows.unit;
        padded_.resize(width);
        std::memset(padded_.data(), 0, width * sizeof(double));
        for (std::size_t r = first; r < first + count; ++r, parts += n) {
            std::memcpy(padded_.data(), parts, n * sizeof(double));
            const std::uint32_t wide_end = rows.wide_offsets[r + 1];
            // Weights were read a moment ago, the marks of live cells were not.
            for (auto e = rows.wide_offsets[r]; e < wide_end; ++e)
                CHORDAL_PREFETCH(x_.live + (rows.base + (rows.wide_codes[e] >> 5) * rows.unit) / 4);
            for (auto e = rows.wide_offsets[r]; e < wide_end; ++e) {
                const std::uint32_t code = rows.wide_codes[e];
                const double value = rows.wide_values ? rows.wide_values[e] : 1.0;
                cells(rows.base + (code >> 5) * rows.unit, (code & 31) * rows.unit, padded_.data(),
                      value);
            }
            for (auto e = rows.narrow_offsets[r]; e < rows.narrow_offsets[r + 1]; ++e) {
                const double value = rows.narrow_values ? rows.narrow_values[e] : 1.0;
                cell(rows.narrow_cells[e], value * parts[rows.narrow_outputs[e]]);
            }
        }
    }
    // Cells c .. c + size, c and size multiples of four.
    void cells(std::size_t c, std::size_t size, const double* parts, double value) {
        if (normed_) lazy_.norm2 -= square(c, size);
        add(to_[0] + c, c, size, parts, scale_[0] * value);
        for (std::size_t a = 1; a < count_; ++a) add(to_[a] + c, c, size, parts, scale_[a] * value);
        if (normed_) lazy_.norm2 += square(c, size);
    }
    void cell(std::size_t c, double value) {
        const double before = to_[0][c];
        for (std::size_t a = 0; a < count_; ++a) to_[a][c] += scale_[a] * value;
        if (normed_) lazy_.norm2 += to_[0][c] * to_[0][c] - before * before;
    }

private:
    CHORDAL_INLINE void add(double* to, std::size_t c, std::size_t size, const double* parts,
                            double scale) const {
        const Pack a = broadcast(scale);
        for (std::size_t k = 0; k < size; k += 4) {
            const double* mask = mask_ + x_.live[(c + k) / 4] * 4;
            CHORDAL_UNROLL
            for (std::size_t i = 0; i < 4; i += kLanes)
                store(to + k + i, a * load(parts + k + i) * load(mask + i) + load(to + k + i));
        }
    }
    double square(std::size_t c, std::size_t size) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < size; ++k) sum += to_[0][c + k] * to_[0][c + k];
        return sum;
    }

    const OnlineChains& x_;
    LazyWeights& lazy_;
    Scratch padded_;
    double* to_[3];
    double scale_[3] = {0.0, 0.0, 0.0};
    std::size_t count_;
    bool velocity_, normed_;
    double mask_[64];
};

// The derivative of one example's loss: first looked for, then given to a kick.
class ExampleLoss {
public:
    ExampleLoss(const OnlineChains& x, const Descent& s)
        : x_(x), s_(s), delta_(x, !s.soft) {}

    // ℓ/ω of the example with its present scores.
    Outcome find(Example& example, bool (*interrupted)(), double& loss) {
        const std::size_t K = x_.labels, T = example.T;
        const double gold = example.score_of(example.gold);
        if (s_.cost) example.add_cost(s_.cost, s_.normalised ? 1.0 / static_cast<double>(T) : 1.0);
        double top = 0.0;
        Outcome outcome;
        if (s_.soft) {
            const std::size_t cells = example.n_tables * K * K;
            unary_.resize(T * K + 1);
            tables_.resize(cells + 4);
            std::memset(tables_.data(), 0, (cells + 4) * sizeof(double));
            outcome = marginals(example.batch(), Domain::automatic, interrupted, nullptr, &top,
                                unary_.data(), tables_.data());
        } else {
            best_.resize(T + 1);
            outcome = best_labelling(example.batch(), interrupted, &top, best_.data());
        }
        loss = top - gold;
        if (outcome == Outcome::done && !std::isfinite(loss)) outcome = Outcome::range;
        return outcome;
    }
    void give(const Example& example, Kick& kick) {
        if (s_.soft)
            give_marginals(example, kick);
        else
            give_best(example, kick);
    }

private:
    void give_marginals(const Example& example, Kick& kick) {
        const std::size_t K = x_.labels, T = example.T;
        for (std::size_t t = 0; t < T; ++t) {
            unary_[t * K + static_cast<std::size_t>(example.gold[t])] -= 1.0;
            if (t > 0)
                tables_[(x_.edge ? (t - 1) * K * K : 0) + example.pair(example.gold, t)] -= 1.0;
        }
        kick.rows(*x_.node, example.first_row, T, unary_.data());
        if (x_.edge && example.n_tables)
            kick.rows(*x_.edge, example.first_edge, T - 1, tables_.data());
        else if (example.n_tables)
            kick.cells(x_.table, padded(K * K), tables_.data(), 1.0);
    }
    void give_best(const Example& example, Kick& kick) {
        bool right = true;
        for (std::size_t t = 0; t < example.T; ++t) right = right && best_[t] == example.gold[t];
        if (right) return;
        delta_.collect(example, best_.data());
        for (std::size_t j = 0; j < delta_.size; ++j) kick.cell(delta_.cell[j], -delta_.value[j]);
    }

    const OnlineChains& x_;
    const Descent& s_;
    Difference delta_;
    Scratch unary_, tables_;
    ScratchOf<std::int32_t> best_;
};

inline Outcome descend(const OnlineChains& x, Order order, std::size_t count,
                       bool (*interrupted)(), Descent& s) {
    const auto rate = [&s] {
        return 1.0 / (s.inverse_rate + s.growth * std::pow(s.steps + s.first, s.power));
    };
    Patience patience(interrupted);
    Example example(x);
    LazyWeights lazy(s, x.cells);
    Kick kick(x, s, lazy);
    ExampleLoss loss(x, s);
    lazy.open(1.0 - rate() * s.lambda);
    Outcome outcome = Outcome::done;
    for (std::size_t k = 0; k < count && outcome == Outcome::done; ++k) {
        const double eta = rate(), d = 1.0 - eta * s.lambda;
        if (s.look_ahead) lazy.advance(d);
        example.open(static_cast<std::size_t>(order[k]));
        if (k + 1 < count) example.prefetch(static_cast<std::size_t>(order[k + 1]));
        example.score(s.z, lazy.D, s.fixed);
        if (s.u) example.add_score(s.u, -lazy.q * lazy.M);
        double found = 0.0;
        outcome = loss.find(example, interrupted, found);
        if (outcome != Outcome::done) break;
        s.loss += example.weight * found;
        if (!s.look_ahead) lazy.advance(d);
        kick.aim(eta * example.weight);
        loss.give(example, kick);
        if (s.radius < kInfinity) lazy.project();
        if (s.R && s.steps >= s.average_after) lazy.average();
        s.steps += 1.0;
        if (patience.spent(example.T * x.labels * (4 * x.labels + 8) + 64))
            outcome = Outcome::stopped;
    }
    lazy.close();
    return outcome;
}

}  // namespace chordal::CHORDAL_ISA
