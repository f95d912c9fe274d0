// AD3: the linear programming relaxation of MAP by alternating directions, on cliques of any order.
//
//   max Σ_v <θ_v, p_v> + Σ_c <θ_c, α_c>   over distributions p_v and α_c with q_cv = p_v,
//   q_cv(l) = Σ_{y: y_v = l} α_c(y),       the marginals of α_c
//
// Each variable's scores are shared among its d_v cliques, s_cv = θ_v / d_v + λ_cv with
// Σ_c λ_cv = 0. An iteration is
//
//   (α_c, q_c) = argmin ½ Σ_v |q_cv - a_cv|² - <θ_c, α_c> / ρ,   a_cv = p_v + s_cv / ρ     (1)
//   p_v        = Σ_c q_cv / d_v                                                           (2)
//   λ_cv      -= ρ (q_cv - p_v)                                                           (3)
//
// (1) is solved by an active set: few labellings of a clique have α > 0. With K_ij the number of
// variables on which the active labellings i and j agree and r_i = Σ_v a_cv(y_v) + θ_c(y) / ρ,
// K α + τ 1 = r and Σ α = 1; a labelling whose gradient exceeds τ joins, one that falls to 0 leaves.
// A little on the diagonal (kRidge) keeps K regular. The set of the last iteration is kept.
//
// Bound, for any λ:  Σ_c max_y [θ_c(y) + Σ_v s_cv(y_v)] + Σ_v max_l [θ_v(l) - Σ_c s_cv(l)].
// Labellings are rounded from p (rounding.hpp). ρ follows the residuals |q - p| and |p - p_old|.
// Where the bound meets a labelling's score, that labelling is proved best.
//
// The bound is rounded upwards: each term is raised by what its additions may have lost (kUlp), so
// that large scores beside small ones make it loose and never wrong. Of a variable with cliques the
// second term is -Σ_c λ_cv(l), computed from λ: θ_v - Σ s would cancel. A proof is relative to the
// scores that the labelling takes, not to those that it avoids.
//
// Hazard: forbidden labels are -inf in s and a, their q and p are 0, and they are never active.
//
// Reference: Martins, Figueiredo, Aguiar, Smith and Xing (2015), AD3: alternating directions dual
// decomposition for MAP inference in graphical models.
#include <cmath>

#include "rounding.hpp"
#include "sum.hpp"

namespace chordal {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr double kRidge = 1e-9;
constexpr double kSlack = 1e-10;
constexpr double kUlp = 4.0 * std::numeric_limits<double>::epsilon();
constexpr double kProof = 1e-10;  // relative gap at which a labelling counts as proved best
constexpr double kLoose = 1e-8;   // the same, where rounding alone keeps the bound from being tighter
constexpr int kSteps = 30;        // changes of an active set in one iteration
constexpr int kCheck = 10;        // iterations between bounds
constexpr double kRatio = 10.0;   // of the residuals, before ρ changes

enum Outcome { kConverged = 0, kStopped = 1, kNoLabelling = 2 };

struct Factor {
    std::int64_t clique, first, order;        // `first` place of the scope
    std::vector<std::int64_t> link;           // [order + 1] where the links of each axis begin
    std::vector<std::int64_t> active, label;  // cells, and their labels [active * order]
    std::vector<double> alpha;
};

// One example.
class Splitting {
public:
    Splitting(const Frame& g, std::int64_t first_variable, std::int64_t last_variable,
              std::int64_t first_clique, std::int64_t last_clique, const double* unary,
              const double* tables)
        : g_(g), unary_(unary), tables_(tables), v0_(first_variable), v1_(last_variable),
          s0_(g.state_offsets[first_variable]), s1_(g.state_offsets[last_variable]) {
        degree_.assign(v1_ - v0_, 0);
        std::int64_t links = 0;
        for (auto c = first_clique; c < last_clique; ++c) {
            Factor f;
            f.clique = c;
            f.first = g.scope_offsets[c];
            f.order = g.scope_offsets[c + 1] - f.first;
            for (std::int64_t k = 0; k < f.order; ++k) {
                f.link.push_back(links);
                links += g.labels(variable(f, k));
                ++degree_[variable(f, k) - v0_];
            }
            f.link.push_back(links);
            factors_.push_back(std::move(f));
            patience_.spend(512);
        }
        for (auto* x : {&lambda_, &target_, &q_, &local_})
            enlarge(*x, static_cast<std::size_t>(links), patience_);
        for (auto* x : {&p_, &old_}) enlarge(*x, static_cast<std::size_t>(s1_ - s0_), patience_);
        start();
    }

    bool feasible() const { return feasible_; }
    bool finite() const { return finite_; }  // else the arithmetic has overflown, and iterations are over
    double bound() const { return best_bound_; }
    double slack() const { return slack_; }  // what the bound is loose by, for rounding alone
    double change() const { return change_; }
    double least() const { return least_; }  // differences that the scores of all blocks make, at least

    // One iteration; the work done is counted in table cells.
    void iterate() {
        for (Factor& f : factors_) project(f);
        if (!feasible_ || !finite_) return;
        std::swap(p_, old_);
        average();
        double primal = 0.0, dual = 0.0;
        change_ = 0.0;
        for (const Factor& f : factors_) {
            patience_.spend(4 * width(f) + 32);
            for (std::int64_t k = 0; k < f.order; ++k) {
                const std::int64_t at = state(f, k), n = f.link[k + 1] - f.link[k];
                for (std::int64_t l = 0; l < n; ++l) {
                    const double r = q_[f.link[k] + l] - p_[at + l];
                    const double d = p_[at + l] - old_[at + l];
                    lambda_[f.link[k] + l] -= rho_ * r;
                    primal += r * r;
                    dual += d * d;
                    change_ = std::max({change_, std::abs(r), std::abs(d)});
                }
            }
        }
        if (++iterations_ % kCheck == 0) adapt(primal, dual);
    }

    void update_bound() {
        CHORDAL_ISA::Sum total;
        double size = 0.0, slack = 0.0;  // of all addends; about as much as the bound is raised
        const auto add = [&](double x) {
            total.add(x);
            size += std::abs(x);
        };
        std::vector<double> rest(s1_ - s0_), lost(s1_ - s0_);
        for (Factor& f : factors_) {
            for (std::int64_t k = 0; k < f.order; ++k)
                for (std::int64_t l = 0; l < f.link[k + 1] - f.link[k]; ++l) {
                    const double s = share(f, k, l), lambda = lambda_[f.link[k] + l];
                    local_[f.link[k] + l] = s > kNone ? s + kUlp * (std::abs(s) + std::abs(lambda)) : s;
                    rest[state(f, k) + l] -= lambda;
                    lost[state(f, k) + l] += std::abs(lambda);
                }
            add(best_cell<true>(f, 1.0).score);
        }
        for (auto v = v0_; v < v1_; ++v) {
            const double degree = static_cast<double>(degree_[v - v0_]);
            double best = kNone, of_best = 0.0;
            for (auto s = g_.state_offsets[v]; s < g_.state_offsets[v + 1]; ++s) {
                if (unary_[s] == kNone) continue;
                const double raise = kUlp * degree * lost[s - s0_];
                const double x = degree > 0.0 ? rest[s - s0_] + raise : unary_[s];
                if (x > best) best = x, of_best = raise;
            }
            add(best);
            slack += 4.0 * of_best;
        }
        const double found = total.value() + kUlp * size;
        if (!(std::isfinite(found) && found < best_bound_)) return;
        best_bound_ = found;
        slack_ = slack + kUlp * size;
    }

    void write_beliefs(double* beliefs) const { std::copy(p_.begin(), p_.end(), beliefs + s0_); }

    double score(const std::int32_t* y) const {
        double total = 0.0;
        for (auto v = v0_; v < v1_; ++v) total += unary_[g_.state_offsets[v] + y[v]];
        for (const Factor& f : factors_) total += tables_[table_start(f) + cell(f, y)];
        return total;
    }

    // The sizes of the scores that a labelling takes.
    double size(const std::int32_t* y) const {
        double total = 0.0;
        for (auto v = v0_; v < v1_; ++v) total += std::abs(unary_[g_.state_offsets[v] + y[v]]);
        for (const Factor& f : factors_) total += std::abs(tables_[table_start(f) + cell(f, y)]);
        return total;
    }

    // Indicators of a labelling times the weight.
    void add_labelling(const std::int32_t* y, double weight, double* unary, double* tables) const {
        std::fill(unary + s0_, unary + s1_, 0.0);
        for (auto v = v0_; v < v1_; ++v) unary[g_.state_offsets[v] + y[v]] = weight;
        for (const Factor& f : factors_) tables[table_start(f) + cell(f, y)] += weight;
    }

    // The fractional solution times the weight; tables of tied cliques are summed.
    void add_parts(double weight, double* unary, double* tables) const {
        for (std::size_t i = 0; i < p_.size(); ++i) unary[s0_ + i] = weight * p_[i];
        for (const Factor& f : factors_) {
            double* table = tables + table_start(f);
            for (std::size_t i = 0; i < f.active.size(); ++i)
                table[f.active[i]] += weight * f.alpha[i];
        }
    }

private:
    struct Cell {
        double score;
        std::int64_t index;
    };

    static std::size_t width(const Factor& f) {  // labels of its variables
        return static_cast<std::size_t>(f.link[f.order] - f.link[0]);
    }
    std::int64_t variable(const Factor& f, std::int64_t k) const { return g_.scopes[f.first + k]; }
    std::int64_t state(const Factor& f, std::int64_t k) const {
        return g_.state_offsets[variable(f, k)] - s0_;
    }
    std::int64_t table_start(const Factor& f) const {
        return g_.table_offsets[g_.table_of_clique[f.clique]];
    }
    std::int64_t cell(const Factor& f, const std::int32_t* y) const {
        std::int64_t index = 0;
        for (std::int64_t k = 0; k < f.order; ++k)
            index = index * (f.link[k + 1] - f.link[k]) + y[variable(f, k)];
        return index;
    }
    double share(const Factor& f, std::int64_t k, std::int64_t l) const {
        const std::int64_t v = variable(f, k);
        return unary_[g_.state_offsets[v] + l] / static_cast<double>(degree_[v - v0_]) +
               lambda_[f.link[k] + l];
    }

    // Uniform beliefs; ρ from the range of the scores; variables without a clique are done.
    void start() {
        double range = 0.0, count = 0.0, smallest = -kNone;
        auto measure = [&](const double* x, std::int64_t n) {
            double low = -kNone, high = kNone;
            for (std::int64_t i = 0; i < n; ++i)
                if (x[i] > kNone) low = std::min(low, x[i]), high = std::max(high, x[i]);
            feasible_ &= high > kNone;
            if (!(high > low)) return;
            count += 1.0;
            smallest = std::min(smallest, high - low);
            range += (high - low - range) / count;  // the mean: a sum might overflow
        };
        for (auto v = v0_; v < v1_; ++v) {
            const double* theta = unary_ + g_.state_offsets[v];
            const std::int64_t n = g_.labels(v);
            measure(theta, n);
            double* p = p_.data() + (g_.state_offsets[v] - s0_);
            if (degree_[v - v0_] == 0) {
                p[std::max_element(theta, theta + n) - theta] = 1.0;
                continue;
            }
            const auto allowed = n - std::count(theta, theta + n, kNone);
            for (std::int64_t l = 0; l < n; ++l)
                p[l] = theta[l] > kNone ? 1.0 / static_cast<double>(allowed) : 0.0;
        }
        for (const Factor& f : factors_)
            measure(tables_ + table_start(f),
                    g_.table_offsets[g_.table_of_clique[f.clique] + 1] - table_start(f));
        scale_ = count > 0.0 ? range : 1.0;
        least_ = count > 0.0 ? count * smallest : 1.0;
        rho_ = 0.1 * scale_;
    }

    void average() {
        for (auto v = v0_; v < v1_; ++v) {
            const std::int64_t at = g_.state_offsets[v] - s0_;
            for (std::int64_t l = 0; l < g_.labels(v); ++l)
                p_[at + l] = degree_[v - v0_] ? 0.0 : old_[at + l];
        }
        for (const Factor& f : factors_) {
            patience_.spend(4 * width(f) + 32);
            for (std::int64_t k = 0; k < f.order; ++k) {
                const double d = static_cast<double>(degree_[variable(f, k) - v0_]);
                const std::int64_t at = state(f, k), n = f.link[k + 1] - f.link[k];
                for (std::int64_t l = 0; l < n; ++l) p_[at + l] += q_[f.link[k] + l] / d;
            }
        }
    }

    void adapt(double primal, double dual) {
        if (primal > kRatio * kRatio * dual)
            rho_ = std::min(rho_ * 2.0, 1e3 * scale_);
        else if (dual > kRatio * kRatio * primal)
            rho_ = std::max(rho_ / 2.0, 1e-4 * scale_);
    }

    // The best cell by factor * θ_c plus local scores of the labels; `Up`: raised by what is lost.
    template <bool Up = false>
    Cell best_cell(const Factor& f, double factor) {
        const double* table = tables_ + table_start(f);
        const std::int64_t last = f.order - 1, inner = f.link[last + 1] - f.link[last];
        const std::int64_t cells =
            g_.table_offsets[g_.table_of_clique[f.clique] + 1] - table_start(f);
        const double* row = local_.data() + f.link[last];
        odometer_.assign(f.order, 0);
        Cell best{kNone, -1};
        patience_.spend(static_cast<std::size_t>(cells));
        for (std::int64_t cell = 0; cell < cells; cell += inner) {
            double base = 0.0, large = 0.0;
            for (std::int64_t k = 0; k < last; ++k) {
                base += local_[f.link[k] + odometer_[k]];
                if (Up) large += std::abs(local_[f.link[k] + odometer_[k]]);
            }
            for (std::int64_t l = 0; l < inner; ++l) {
                double x = factor * table[cell + l] + base + row[l];
                if (Up && x > kNone)
                    x += kUlp * static_cast<double>(f.order) *
                         (large + std::abs(factor * table[cell + l]) + std::abs(row[l]));
                if (x > best.score) best = {x, cell + l};
            }
            for (std::int64_t k = last - 1; k >= 0; --k) {
                if (++odometer_[k] < f.link[k + 1] - f.link[k]) break;
                odometer_[k] = 0;
            }
        }
        return best;
    }

    // Whether a clique has a labelling without a score of -inf.
    bool allows_one(const Factor& f) {
        for (std::int64_t k = 0; k < f.order; ++k)
            for (std::int64_t l = 0; l < f.link[k + 1] - f.link[k]; ++l)
                local_[f.link[k] + l] = unary_[s0_ + state(f, k) + l] > kNone ? 0.0 : kNone;
        return best_cell(f, 1e-300).index >= 0;  // so small a factor overflows nothing
    }

    // (1) for one clique, unless nothing has changed since the last iteration.
    void project(Factor& f) {
        bool same = !f.active.empty() && f.alpha.size() == f.active.size() && rho_ == last_rho_;
        for (std::int64_t k = 0; k < f.order; ++k) {
            const std::int64_t at = state(f, k), n = f.link[k + 1] - f.link[k];
            for (std::int64_t l = 0; l < n; ++l) {
                const double a = p_[at + l] + share(f, k, l) / rho_;
                same &= a == target_[f.link[k] + l];
                target_[f.link[k] + l] = a;
            }
        }
        patience_.spend(8 * width(f) + 64);
        if (&f == &factors_.back()) last_rho_ = rho_;
        if (same) return;
        if (f.active.empty()) {
            std::copy(target_.begin() + f.link[0], target_.begin() + f.link[f.order],
                      local_.begin() + f.link[0]);
            const Cell best = best_cell(f, 1.0 / rho_);
            if (best.index < 0) {
                (allows_one(f) ? finite_ : feasible_) = false;
                return;
            }
            join(f, best.index);
            f.alpha[0] = 1.0;
        }
        for (int step = 0; step < kSteps; ++step) {
            const double tau = solve(f);
            if (!std::isfinite(tau)) {  // the scores overflow when they are divided by ρ
                finite_ = false;
                return;
            }
            const auto n = f.active.size();
            double reach = 1.0;
            std::size_t blocking = n;
            for (std::size_t i = 0; i < n; ++i)
                if (x_[i] < 0.0) {
                    const double t = f.alpha[i] / (f.alpha[i] - x_[i]);
                    if (t < reach || blocking == n) reach = t, blocking = i;
                }
            for (std::size_t i = 0; i < n; ++i) f.alpha[i] += reach * (x_[i] - f.alpha[i]);
            if (blocking < n) {
                leave(f, blocking);
                continue;
            }
            marginalise(f);
            for (auto i = f.link[0]; i < f.link[f.order]; ++i) local_[i] = target_[i] - q_[i];
            const Cell best = best_cell(f, 1.0 / rho_);
            if (best.index < 0 || best.score <= tau + kSlack * (1.0 + std::abs(tau)) ||
                std::find(f.active.begin(), f.active.end(), best.index) != f.active.end())
                return;
            if (step + 1 < kSteps) join(f, best.index);
        }
        marginalise(f);
    }

    void join(Factor& f, std::int64_t cell) {
        f.active.push_back(cell);
        f.alpha.push_back(0.0);
        f.label.resize(f.label.size() + f.order);
        std::int64_t* y = f.label.data() + f.label.size();
        for (std::int64_t k = f.order - 1; k >= 0; --k) {
            const std::int64_t n = f.link[k + 1] - f.link[k];
            *--y = cell % n;
            cell /= n;
        }
    }

    static void leave(Factor& f, std::size_t i) {
        f.active.erase(f.active.begin() + i);
        f.alpha.erase(f.alpha.begin() + i);
        f.label.erase(f.label.begin() + i * f.order, f.label.begin() + (i + 1) * f.order);
        double total = 0.0;
        for (double& a : f.alpha) total += a = std::max(a, 0.0);
        for (double& a : f.alpha) a = total > 0.0 ? a / total : 1.0 / f.alpha.size();
    }

    void marginalise(const Factor& f) {
        std::fill(q_.begin() + f.link[0], q_.begin() + f.link[f.order], 0.0);
        for (std::size_t i = 0; i < f.active.size(); ++i)
            for (std::int64_t k = 0; k < f.order; ++k)
                q_[f.link[k] + f.label[i * f.order + k]] += f.alpha[i];
    }

    // x_ = argmin over the active set with Σ x = 1 and no regard to signs; returns τ.
    double solve(const Factor& f) {
        const std::size_t n = f.active.size();
        matrix_.resize(n * n);
        x_.resize(n);
        ones_.assign(n, 1.0);
        const double* table = tables_ + table_start(f);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t* yi = f.label.data() + i * f.order;
            x_[i] = table[f.active[i]] / rho_;
            for (std::int64_t k = 0; k < f.order; ++k) x_[i] += target_[f.link[k] + yi[k]];
            for (std::size_t j = 0; j <= i; ++j) {
                const std::int64_t* yj = f.label.data() + j * f.order;
                double agree = i == j ? kRidge : 0.0;
                for (std::int64_t k = 0; k < f.order; ++k) agree += yi[k] == yj[k];
                matrix_[i * n + j] = agree;
            }
        }
        patience_.spend(n * n * n);
        const double top = *std::max_element(x_.begin(), x_.end());
        for (double& x : x_) x -= top;  // a shift of r shifts τ alone
        cholesky(n);
        substitute(n, x_.data());
        substitute(n, ones_.data());
        const double tau = (std::accumulate(x_.begin(), x_.end(), 0.0) - 1.0) /
                           std::accumulate(ones_.begin(), ones_.end(), 0.0);
        for (std::size_t i = 0; i < n; ++i) x_[i] -= tau * ones_[i];
        return tau + top;
    }

    void cholesky(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = matrix_[i * n + j];
                for (std::size_t k = 0; k < j; ++k) sum -= matrix_[i * n + k] * matrix_[j * n + k];
                matrix_[i * n + j] =
                    i == j ? std::sqrt(std::max(sum, kRidge)) : sum / matrix_[j * n + j];
            }
    }

    void substitute(std::size_t n, double* x) const {
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t k = 0; k < i; ++k) x[i] -= matrix_[i * n + k] * x[k];
            x[i] /= matrix_[i * n + i];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t k = i + 1; k < n; ++k) x[i] -= matrix_[k * n + i] * x[k];
            x[i] /= matrix_[i * n + i];
        }
    }

    const Frame& g_;
    const double* unary_;
    const double* tables_;
    std::int64_t v0_, v1_, s0_, s1_;
    std::vector<std::int64_t> degree_, odometer_;
    std::vector<Factor> factors_;
    std::vector<double> lambda_, target_, q_, local_;  // [links]: (clique, its variable, label)
    std::vector<double> p_, old_;                      // [states]
    std::vector<double> matrix_, x_, ones_;
    double rho_ = 1.0, last_rho_ = 0.0, scale_ = 1.0, least_ = 1.0, change_ = 0.0;
    double best_bound_ = std::numeric_limits<double>::infinity(), slack_ = 0.0;
    std::int64_t iterations_ = 0;
    CHORDAL_ISA::Patience patience_{interrupted};
    bool feasible_ = true, finite_ = true;
};

struct Result {
    double score = kNone, bound = -kNone, change = 0.0;
    std::int64_t n_iter = 0;
    Outcome outcome = kStopped;
    bool proved = false;
};

// All examples.
struct Solved : Iterations {
    std::vector<double> score, bound;
    Indices outcome;

    explicit Solved(std::size_t n) : Iterations(n), score(n), bound(n), outcome(n) {}
    void set(std::size_t e, const Result& r) {
        score[e] = r.score;
        bound[e] = r.bound;
        change[e] = r.change;
        outcome[e] = r.outcome;
        n_iter[e] = r.n_iter;
    }
};

// Iterates on one example; y [variables] is the best labelling found, beliefs [states] is room. Out of time,
// a labelling, after one iteration at least; with `late` from the beginning. Stopped if not even that was
// there in time, and nothing of examples before it either.
Result run(Splitting& split, Rounding& rounding, std::int64_t first, std::int64_t last,
           std::int64_t max_iter, double tol, double* beliefs, std::vector<std::int32_t>& trial,
           std::int32_t* y, bool begun, bool& late) {
    Result r;
    const auto look = [&](bool still) {
        split.update_bound();
        split.write_beliefs(beliefs);
        rounding.round(first, last, beliefs, trial.data());
        const double found = split.score(trial.data());
        if (found >= r.score) {
            r.score = found;
            std::copy(trial.begin() + first, trial.begin() + last, y + first);
        }
        const double size = std::max(split.least(), split.size(y));
        const double enough = kProof * size + std::min(split.slack(), kLoose * size);
        r.proved = r.score > kNone && split.bound() - r.score <= enough;
        if (r.proved || still) r.outcome = kConverged;
    };
    try {
        while (split.feasible() && r.outcome == kStopped && r.n_iter < max_iter && !late) {
            split.iterate();
            if (!split.feasible() || !split.finite()) break;
            const bool still = split.change() <= tol;
            if (++r.n_iter % kCheck == 0 || still || r.n_iter == max_iter) look(still);
        }
    } catch (const Stopped&) {
        if (!out_of_time() || (!begun && r.n_iter == 0)) throw;
        late = true;
    }
    if ((late || !split.finite()) && split.feasible() && r.outcome == kStopped) {
        const Grace grace;
        if (r.n_iter == 0 && split.finite()) split.iterate();  // else what the last one left has a bound and beliefs
        if (split.feasible()) look(false);
    }
    if (!split.feasible()) r.outcome = kNoLabelling;
    r.bound = std::max(split.bound(), r.score);
    r.change = r.proved ? 0.0 : split.change();
    return r;
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    nb::class_<Solved, Iterations>(m, "AD3Result", "How AD3 ended in each example.")
        .def_prop_ro("score", [](const Solved& self) { return inside(self.score); },
                     "Of the best labelling found.")
        .def_prop_ro("bound", [](const Solved& self) { return inside(self.bound); },
                     "What no score exceeds.")
        .def_prop_ro("outcome", [](const Solved& self) { return inside(self.outcome); },
                     "0: converged, 1: max_iter was reached, 2: there is no labelling.");
    // weight [examples]. labels [variables] is written; the parts hold zeros.
    m.def(
        "ad3",
        [](const BoundScores& g, const BoundParts& parts, std::int64_t max_iter, double tol,
           Weight weight, Output<std::int32_t> labels) {
            Solved solved(g.examples);
            {
                GilReleased release;
                std::optional<Grace> grace;  // between examples: the limit is for iterations
                const Members members(g);
                Rounding rounding(g, members, g.unary, g.tables);
                std::vector<std::int32_t> trial(g.variables);
                for (std::size_t e = 0; e < g.examples; ++e) {
                    const auto first = g.variable_offsets[e], last = g.variable_offsets[e + 1];
                    Splitting split(g, first, last, g.clique_offsets[e], g.clique_offsets[e + 1],
                                    g.unary, g.tables);
                    if (!solved.late) grace.reset();
                    const Result r = run(split, rounding, first, last, max_iter, tol, parts.unary,
                                         trial, labels.data(), e > 0, solved.late);
                    grace.emplace();
                    solved.set(e, r);
                    const double w = weight ? weight->data()[e] : 1.0;
                    if (r.proved)
                        split.add_labelling(labels.data(), w, parts.unary, parts.tables);
                    else
                        split.add_parts(w, parts.unary, parts.tables);
                }
            }
            return solved;
        },
        nb::arg("scores"), nb::arg("parts"), nb::arg("max_iter"), nb::arg("tol"),
        nb::arg("weight").none(), nb::arg("labels"));
});

}  // namespace chordal
