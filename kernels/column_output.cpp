// A column for text in columns: the lines of a block as they are, those of rows with one more text.
//
//   text[0 .. size)     lines; row t is the line that holds position row_ends[t], rising with t
//   pool                texts one after another; number k is pool[offsets[k] .. offsets[k + 1])
//
// Text number numbers[t] is put where the line of row t ends, before its LF or CRLF. Everything else,
// blank lines and comments included, is copied byte for byte. A last line without an end gets one.
#include <cstring>
#include <string>

#include "binding.hpp"

namespace chordal {
namespace {

struct Pool {
    const char* bytes;
    const std::int64_t* offsets;

    void append(std::int32_t k, std::string& out) const {
        const auto begin = offsets[k];
        out.append(bytes + begin, static_cast<std::size_t>(offsets[k + 1] - begin));
    }
};

// Where the line of position `at` ends: its LF, or its CR before that, or the end of the text.
std::size_t line_end(const char* text, std::size_t at, std::size_t size) {
    const void* found = std::memchr(text + at, '\n', size - at);
    if (!found) return size;
    const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - text);
    return end > at && text[end - 1] == '\r' ? end - 1 : end;
}

std::string with_column(const char* text, std::size_t size, const Input<std::uint32_t>& row_ends,
                        const std::int32_t* numbers, const Pool& pool) {
    std::string out;
    out.reserve(size + 8 * row_ends.size() + 1);
    std::size_t copied = 0;
    for (std::size_t t = 0; t < row_ends.size(); ++t) {
        const std::size_t end = line_end(text, row_ends.data()[t], size);
        out.append(text + copied, end - copied);
        pool.append(numbers[t], out);
        copied = end;
    }
    out.append(text + copied, size - copied);
    if (row_ends.size() > 0 && copied == size) out.push_back('\n');
    return out;
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "column_append",
        [](nb::bytes text, std::size_t size, Input<std::uint32_t> row_ends,
           Input<std::int32_t> numbers, nb::bytes pool, Input<std::int64_t> offsets) {
            if (size > text.size() || row_ends.size() != numbers.size() || offsets.size() == 0)
                throw nb::value_error("rows, numbers and texts do not fit together");
            for (std::size_t t = 0; t < row_ends.size(); ++t) {
                if (row_ends.data()[t] > size || (t > 0 && row_ends.data()[t] < row_ends.data()[t - 1]))
                    throw nb::value_error("rows must rise within the text");
                const std::int32_t k = numbers.data()[t];
                if (k < 0 || static_cast<std::size_t>(k) + 1 >= offsets.size())
                    throw nb::value_error("a row's number has no text");
            }
            for (std::size_t k = 0; k < offsets.size(); ++k)
                if (offsets.data()[k] < (k ? offsets.data()[k - 1] : 0) ||
                    static_cast<std::size_t>(offsets.data()[k]) > pool.size())
                    throw nb::value_error("texts must rise within their pool");
            std::string out;
            {
                GilReleased release;
                out = with_column(text.c_str(), size, row_ends, numbers.data(),
                                  Pool{pool.c_str(), offsets.data()});
            }
            return nb::bytes(out.data(), out.size());
        },
        nb::arg("text"), nb::arg("size"), nb::arg("row_ends"), nb::arg("numbers"), nb::arg("pool"),
        nb::arg("offsets"), "The first `size` bytes of the text with a column appended.");
});

}  // namespace chordal
