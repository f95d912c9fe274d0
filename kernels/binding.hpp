// What every binding shares: array types and checks of sizes, how a file joins the module, Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "gil.hpp"
#include "stopping.hpp"

namespace chordal {

namespace nb = nanobind;

// An array of exactly this type: nothing is converted silently.
template <class Array>
struct Exact : Array {
    Exact() = default;
    explicit Exact(Array&& array) : Array(std::move(array)) {}
};

// Read-only and writable contiguous arrays.
template <class T>
using Input = Exact<nb::ndarray<nb::numpy, const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;
template <class T>
using Output = Exact<nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

// ValueError unless sizes fit.
inline void require(bool holds, const char* what) {
    if (!holds) throw nb::value_error(what);
}

// Moves a vector into a NumPy array without copying it.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T>&& data) {
    auto* kept = new std::vector<T>(std::move(data));
    kept->shrink_to_fit();  // it may live long
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

// A read-only NumPy array of what a bound object holds; a property that returns it keeps the object.
template <class T>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> inside(const std::vector<T>& data) {
    return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data.data(), {data.size()});
}

// A kernel file's own functions: `static const Binding binding([](nb::module_& m) { … });` adds
// them to the module, and nothing else lists the file. Classes that others derive from come first.
class Binding {
public:
    explicit Binding(void (*bind)(nb::module_&), bool first = false);
};

}  // namespace chordal

namespace nanobind::detail {

template <class Array>
struct type_caster<chordal::Exact<Array>> {
    NB_TYPE_CASTER(chordal::Exact<Array>, make_caster<Array>::Name)

    template <class Flags>
    bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
        make_caster<Array> array;
        const auto exactly = static_cast<Flags>(flags & ~static_cast<Flags>(cast_flags::convert));
        if (!array.from_python(source, exactly, cleanup)) return false;
        value = chordal::Exact<Array>(std::move(array.value));
        return true;
    }
    static handle from_cpp(const Value& array, rv_policy policy, cleanup_list* cleanup) noexcept {
        return make_caster<Array>::from_cpp(array, policy, cleanup);
    }
};

}  // namespace nanobind::detail
