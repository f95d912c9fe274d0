// Python's nested lists and dicts as rows of attributes.
//
// A token is a dict, list, tuple or set. As in CRFsuite, a string in a list is an attribute of
// value 1; in a dict {"word": "Paris"} is the attribute "word:Paris" of value 1, {"len": 5.0} is
// "len" of value 5, {"upper": True} is "upper" of value 1, and containers nest: {"a": {"b": 2.0}}
// is "a:b" of value 2. A value of zero adds nothing and is dropped. An array of numbers is no
// attribute: it goes to the vectors (item_vectors.hpp).
// Strings are fetched a token ahead, since what takes time is cache misses.
#pragma once

#include <nanobind/stl/string.h>

#include <cmath>

#include "item_vectors.hpp"
#include "python_objects.hpp"
#include "vocabulary.hpp"

namespace chordal {

// Walks Python's containers; holds the GIL throughout.
class ItemReader {
public:
    ItemReader(Vocabulary& vocabulary, bool grow) : names(vocabulary, grow) {}

    void batch(nb::handle X) {
        const nb::object all = listed(X, "X", "a list of sequences");
        const auto n = item_count(all);
        for (sequence_ = 0; sequence_ < n; ++sequence_) {
            if ((sequence_ & 1023) == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
            tokens(item_at(all, sequence_));
        }
        names.look_up();
    }
    // One sequence, which messages call X[0], in place of what was read before.
    void sequence(nb::handle x) {
        names.clear();
        lengths.clear();
        vectors.clear();
        row_ = 0;
        tokens(x);
        names.look_up();
    }

    Names names;
    std::vector<std::int64_t> lengths;
    ItemVectors vectors;

private:
    std::string where() const {
        const std::string text = 'X' + bracketed(sequence_);
        return position_ >= 0 ? text + bracketed(position_) : text;
    }
    static std::string bracketed(Py_ssize_t number) { return '[' + std::to_string(number) + ']'; }

    [[noreturn]] void refuse_type(const std::string& message) const {
        throw nb::type_error(message.c_str());
    }

    nb::object listed(nb::handle x, const char* name, const char* expected) const {
        const bool text = PyUnicode_Check(x.ptr()) || PyBytes_Check(x.ptr());
        nb::object list;
        if (!text && !PyDict_Check(x.ptr())) list = items_of(x);
        if (!list.is_valid()) {
            PyErr_Clear();
            refuse_type((*name ? std::string(name) : where()) + " must be " + expected + ", got " +
                        type_of(x));
        }
        return list;
    }

    // Fetches the strings of a list, which are read next.
    static void prefetch(PyObject* item) {
        if (kItemsMayChange || !PyList_CheckExact(item)) return;
        for (Py_ssize_t k = 0, n = item_count(item); k < n; ++k)
            CHORDAL_PREFETCH(item_at(item, k));
    }

    void tokens(nb::handle x) {
        position_ = -1;
        const nb::object all = listed(x, "", "a list of tokens");
        const auto length = item_count(all);
        for (position_ = 0; position_ < length; ++position_) {
            if (position_ + 1 < length) prefetch(item_at(all, position_ + 1));
            token(item_at(all, position_));
        }
        lengths.push_back(length);
    }

    void token(nb::handle item) {
        prefix_.clear();
        depth_ = 0;
        if (PyUnicode_Check(item.ptr()))
            refuse_type(where() + " is a str; a token must be a dict or a list of attribute "
                        "strings: write [\"...\"] for a token with one attribute");
        container(item);
        names.end_row();
        ++row_;
    }

    void container(nb::handle item) {
        if (PyList_Check(item.ptr()) || PyTuple_Check(item.ptr())) {
            const nb::object all = items_of(item);
            if (!all.is_valid()) throw nb::python_error();
            for (Py_ssize_t k = 0; k < item_count(all); ++k) attribute(item_at(all, k));
        } else if (PyDict_Check(item.ptr())) {
            mapping(item);
        } else if (PyAnySet_Check(item.ptr())) {  // sorted: a set's own order changes between runs
            for (nb::handle name : item)
                if (!PyUnicode_Check(name.ptr())) refuse_name(name);
            const nb::object all = nb::steal(PySequence_List(item.ptr()));
            if (!all.is_valid() || PyList_Sort(all.ptr()) != 0) throw nb::python_error();
            for (nb::handle name : all) attribute(name);
        } else {
            refuse_type(where() + " must be a dict, list, tuple or set of attributes, got " +
                        type_of(item));
        }
    }

    [[noreturn]] void refuse_name(nb::handle name) const {
        const bool number = PyFloat_Check(name.ptr()) || PyObject_CheckBuffer(name.ptr());
        refuse_type("attribute names must be str, got " + type_of(name) + " in " + where() +
                    (number ? "; a vector is an array with a name: {\"vec\": array}" : ""));
    }

    void attribute(nb::handle name) {
        if (!PyUnicode_Check(name.ptr())) refuse_name(name);
        names.text() += prefix_;
        append_text(name.ptr(), names.text());
        names.finish();
    }

    // Whether all values are Python's own strings and numbers.
    static bool plain(nb::handle item) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        while (PyDict_Next(item.ptr(), &at, &key, &value))
            if (!PyUnicode_Check(value) && !PyFloat_CheckExact(value) &&
                !PyLong_CheckExact(value) && !PyBool_Check(value))
                return false;
        return true;
    }

    void mapping(nb::handle item) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        nb::object copy;  // float() of other objects may run any code, and change the dict
        if (kItemsMayChange || !plain(item)) {
            copy = nb::steal(PyDict_Copy(item.ptr()));
            if (!copy.is_valid()) throw nb::python_error();
        }
        PyObject* dict = copy.is_valid() ? copy.ptr() : item.ptr();
        while (PyDict_Next(dict, &at, &key, &value)) {
            if (!PyUnicode_Check(key)) refuse_name(key);
            const std::size_t begin_of_prefix = prefix_.size();
            if (PyUnicode_Check(value)) {
                names.text() += prefix_;
                append_text(key, names.text());
                names.text().push_back(':');
                append_text(value, names.text());
                names.finish();
            } else if (PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value) ||
                       PyAnySet_Check(value)) {
                append_text(key, prefix_);
                prefix_.push_back(':');
                if (++depth_ > 100) throw nb::value_error((where() + " is nested too deeply").c_str());
                container(value);
                --depth_;
                prefix_.resize(begin_of_prefix);
            } else if (!vector(key, value)) {
                const double number = number_of(key, value);
                if (number == 0.0) continue;
                names.text() += prefix_;
                append_text(key, names.text());
                names.finish(number);
            }
        }
    }

    // Takes an array of numbers; false for what is none.
    bool vector(nb::handle key, nb::handle value) {
        if (PyFloat_Check(value.ptr()) || !PySequence_Check(value.ptr()) ||
            PyBytes_Check(value.ptr()) || PyByteArray_Check(value.ptr()))
            return false;
        NumberView view;
        nb::object converted;
        if (!view.open(value.ptr())) {  // as it is with tensors, for instance
            if (!nb::hasattr(value, "__array__")) return false;
            converted = numbers_of(key, value);
            if (!view.open(converted.ptr())) return false;
        }
        if (view.dimensions() == 0) return false;
        if (view.dimensions() != 1 || view.size() == 0)
            refuse_vector(key, view.dimensions() != 1
                                   ? "have one dimension, got " + std::to_string(view.dimensions())
                                   : "hold at least one number");
        full_name_ = prefix_;
        append_text(key.ptr(), full_name_);
        VectorBlock& block = vectors.block(full_name_, view.size());
        if (block.width != view.size())
            refuse_vector(key, "have " + std::to_string(block.width) +
                                   " numbers as the first one, got " + std::to_string(view.size()));
        if (!block.rows.empty() && block.rows.back() == row_)
            refuse_vector(key, "occur once in a token");
        if (!view.append_to(block)) {  // of a type that NumPy knows, if any
            converted = numbers_of(key, value);
            require(view.open(converted.ptr()) && view.append_to(block), "no array of numbers");
        }
        if (!all_finite(block)) refuse_vector(key, "hold no NaN and no infinity; clean or impute it");
        block.rows.push_back(row_);
        return true;
    }

    // An array of float64 with the same numbers.
    nb::object numbers_of(nb::handle key, nb::handle value) const {
        const nb::module_ numpy = nb::module_::import_("numpy");
        const nb::object array = numpy.attr("asarray")(value);
        const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
        const nb::object type = array.attr("dtype");
        if (std::string("fiub").find(kind) == std::string::npos)
            refuse_type("the array " + nb::cast<std::string>(nb::repr(key)) + " in " + where() +
                        " must hold numbers, got " + nb::cast<std::string>(nb::repr(type)));
        return array.attr("astype")("float64");
    }

    [[noreturn]] void refuse_vector(nb::handle key, const std::string& must) const {
        const std::string name = nb::cast<std::string>(nb::repr(key));
        throw nb::value_error(("the array " + name + " in " + where() + " must " + must).c_str());
    }

    double number_of(nb::handle key, nb::handle value) const {
        const bool numeric = PyNumber_Check(value.ptr()) && !PyComplex_Check(value.ptr());
        const double number = numeric ? PyFloat_AsDouble(value.ptr()) : -1.0;
        if (!numeric || (number == -1.0 && PyErr_Occurred())) {
            PyErr_Clear();
            refuse_type("the value of attribute " + nb::cast<std::string>(nb::repr(key)) + " in " +
                        where() + " must be a str, a number, a bool, a container or an array of numbers, got " +
                        type_of(value));
        }
        if (!std::isfinite(number))
            throw nb::value_error(("the value of attribute " +
                                   nb::cast<std::string>(nb::repr(key)) + " in " + where() +
                                   " must be finite, got " + std::to_string(number))
                                      .c_str());
        return number;
    }

    Py_ssize_t sequence_ = 0, position_ = -1;
    int depth_ = 0;  // of nested containers
    std::int64_t row_ = 0;  // tokens before this one
    std::string prefix_, full_name_;
};

}  // namespace chordal
