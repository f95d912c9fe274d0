// A padded batch of chains in Python, and what it can be asked (padded_calls.hpp).
#include <optional>
#include <string>

#include <nanobind/stl/optional.h>

#include "binding.hpp"
#include "padded_calls.hpp"

namespace chordal {
namespace {

std::string text_of(const Misfit& misfit) {
    using Of = Misfit::Of;
    const auto number = [](Int n) { return std::to_string(n); };
    std::string place;
    if (misfit.sequence >= 0) place += "sequence " + number(misfit.sequence) + ", ";
    if (misfit.step >= 0) place += "step " + number(misfit.step) + ", ";
    if (misfit.of == Of::sum)
        return "the sum of scores of sequence " + number(misfit.sequence) +
               " overflows: they are too large; scale the emissions";
    if (misfit.of == Of::tag)
        return "tags: " + place.substr(0, place.size() - 2) + " is " + number(misfit.tag) +
               ", which is not a tag";
    const char* name = misfit.of == Of::emission ? "emissions: "
                       : misfit.of == Of::start  ? "start_transitions: "
                       : misfit.of == Of::end    ? "end_transitions: "
                                                 : "transitions: ";
    if (misfit.of == Of::transition) place += "from tag " + number(misfit.from) + ", to ";
    return name + place + "tag " + number(misfit.tag) + (std::isnan(misfit.value) ? " is nan" : " is +inf") +
           "; scores must be numbers below +inf";
}

// Runs a kernel without the GIL and turns its outcome into Python's errors.
template <class Kernel>
Int run(Kernel kernel) {
    Int found;
    try {
        GilReleased release;
        found = kernel();
    } catch (const Misfit& misfit) {
        throw nb::value_error(text_of(misfit).c_str());
    }
    if (found == -2) throw nb::python_error();
    return found;
}

template <class T, std::size_t N>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<N>, nb::device::cpu>;
template <class T>
using Row = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t N, class A>
Strided<T, N> strided(const A& array) {
    Strided<T, N> view;
    view.data = array.data();
    for (std::size_t k = 0; k < N; ++k) view.stride[k] = array.stride(k);
    return view;
}

// In Python: PaddedScores32 and PaddedScores64. Transitions have a stride of 0 over what shares them.
template <class T>
struct BoundPaddedScores : PaddedScores<T> {
    Array<T, 3> held;
    Row<T> held_start, held_end;
    Array<T, 4> held_transitions;

    BoundPaddedScores(Array<T, 3> emissions, Row<T> start, Row<T> end, Array<T, 4> transitions)
        : held(emissions), held_start(start), held_end(end), held_transitions(transitions) {
        const std::size_t L = emissions.shape(2);
        require(start.size() == L && end.size() == L, "start and end must have an entry for every tag");
        require(transitions.shape(2) == L && transitions.shape(3) == L,
                "transitions must have a row and a column for every tag");
        for (std::size_t k = 0; k < 2; ++k)
            require(transitions.shape(k) == 1 || transitions.shape(k) == emissions.shape(k),
                    "transitions must be for all, for each sequence or for each step");
        this->emissions = strided<T, 3>(emissions);
        this->start = start.data();
        this->end = end.data();
        this->transitions = strided<T, 4>(transitions);
        for (std::size_t k = 0; k < 2; ++k)
            if (transitions.shape(k) == 1) this->transitions.stride[k] = 0;
    }
};

template <class T>
void bind(nb::module_& m, const char* scores_name, const char* parts_name, const char* chains_name) {
    using Scores = BoundPaddedScores<const T>;
    using Parts = BoundPaddedScores<T>;
    struct Chains : PaddedChains<T> {
        nb::object scores;
        std::optional<Array<const bool, 2>> held_mask;
        std::optional<Array<const Int, 2>> held_tags;
    };
    nb::class_<Scores>(m, scores_name, "Scores of a padded batch, to be read.")
        .def(nb::init<Array<const T, 3>, Row<const T>, Row<const T>, Array<const T, 4>>(),
             nb::kw_only(), nb::arg("emissions"), nb::arg("start"), nb::arg("end"),
             nb::arg("transitions"));
    nb::class_<Parts>(m, parts_name, "Numbers in the shape of such scores, to be written.")
        .def(nb::init<Array<T, 3>, Row<T>, Row<T>, Array<T, 4>>(), nb::kw_only(),
             nb::arg("emissions"), nb::arg("start"), nb::arg("end"), nb::arg("transitions"));
    nb::class_<Chains>(m, chains_name, "A padded batch of chains, and what can be asked of it.")
        .def(
            "__init__",
            [](Chains* self, nb::typed<nb::object, Scores> scores,
               std::optional<Array<const bool, 2>> mask, std::optional<Array<const Int, 2>> tags,
               Int ignore_index, std::size_t threads) {
                const Scores& from = nb::cast<const Scores&>(scores);
                Chains chains;
                static_cast<PaddedScores<const T>&>(chains) = from;
                chains.scores = scores;
                chains.sequences = from.held.shape(0);
                chains.steps = from.held.shape(1);
                chains.labels = from.held.shape(2);
                chains.tying = from.held_transitions.shape(1) != 1   ? Tying::step
                               : from.held_transitions.shape(0) != 1 ? Tying::sequence
                                                                     : Tying::all;
                if (mask) {
                    require(mask->shape(0) == chains.sequences && mask->shape(1) == chains.steps,
                            "mask must have an entry for every step");
                    chains.mask = strided<const bool, 2>(*mask);
                }
                if (tags) {
                    require(tags->shape(0) == chains.sequences && tags->shape(1) == chains.steps,
                            "tags must have an entry for every step");
                    chains.tags = strided<const Int, 2>(*tags);
                }
                chains.held_mask = mask;
                chains.held_tags = tags;
                chains.ignored = ignore_index;
                chains.threads = threads;
                new (self) Chains(std::move(chains));
            },
            nb::arg("scores"), nb::kw_only(), nb::arg("mask").none(), nb::arg("tags").none(),
            nb::arg("ignore_index"), nb::arg("threads"))
        .def(
            "value",
            [](const Chains& x, Row<T> out) {
                require(out.size() == x.sequences, "out must have an entry for every sequence");
                return run([&] { return padded_value<T>(x, out.data()); });
            },
            nb::arg("out"))
        .def(
            "gradient",
            [](const Chains& x, const Parts& parts, Row<const T> weight, std::optional<Row<T>> value) {
                require(weight.size() == x.sequences && (!value || value->size() == x.sequences),
                        "weight and value must have an entry for every sequence");
                T* values = value ? value->data() : nullptr;
                return run([&] { return padded_gradient<T>(x, weight.data(), parts, values); });
            },
            nb::arg("parts"), nb::kw_only(), nb::arg("weight"), nb::arg("value").none() = nb::none())
        .def(
            "curvature",
            [](const Chains& x, const Parts& parts, const Scores& direction, Row<const T> weight,
               Row<T> slope) {
                require(weight.size() == x.sequences && slope.size() == x.sequences,
                        "weight and slope must have an entry for every sequence");
                return run([&] {
                    return padded_curvature<T>(x, weight.data(), direction, parts, slope.data());
                });
            },
            nb::arg("parts"), nb::kw_only(), nb::arg("direction"), nb::arg("weight"),
            nb::arg("slope"))
        .def(
            "viterbi",
            [](const Chains& x, Row<T> score, Array<Int, 2> tags) {
                require(score.size() == x.sequences && tags.shape(0) == x.sequences &&
                            tags.shape(1) == x.steps,
                        "score and tags must be of the batch's shape");
                return run([&] {
                    return padded_viterbi<T>(x, score.data(), strided<Int, 2>(tags));
                });
            },
            nb::kw_only(), nb::arg("score"), nb::arg("tags"))
        .def(
            "k_best",
            [](const Chains& x, Array<T, 2> score, Array<Int, 3> tags) {
                const std::size_t k = score.shape(1);
                require(score.shape(0) == x.sequences && tags.shape(0) == x.sequences &&
                            tags.shape(1) == k && tags.shape(2) == x.steps,
                        "score and tags must be of the batch's shape");
                return run([&] {
                    return padded_k_best<T>(x, k, strided<T, 2>(score), strided<Int, 3>(tags));
                });
            },
            nb::kw_only(), nb::arg("score"), nb::arg("tags"))
        .def(
            "sample",
            [](const Chains& x, Array<const double, 3> uniform, Array<Int, 3> tags) {
                for (std::size_t k = 0; k < 3; ++k)
                    require(uniform.shape(k) == tags.shape(k), "uniform and tags must be of one shape");
                require(tags.shape(1) == x.sequences && tags.shape(2) == x.steps,
                        "tags must be of the batch's shape");
                return run([&] {
                    return padded_sample<T>(x, tags.shape(0), strided<const double, 3>(uniform),
                                            strided<Int, 3>(tags));
                });
            },
            nb::kw_only(), nb::arg("uniform"), nb::arg("tags"));
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    bind<float>(m, "PaddedScores32", "PaddedParts32", "PaddedChains32");
    bind<double>(m, "PaddedScores64", "PaddedParts64", "PaddedChains64");
});

}  // namespace chordal
