// Feature templates: columns of text in, attribute ids out, without a Python object per token.
//
// A template is a list of lines, a line a list of items: a literal, or a macro on the cell at
// (row offset, column): itself (x), whether a pattern is found in it (t), what the pattern found
// (m), or its shape (s). The values of a line's items, one after another, are the attribute's name.
//
// Patterns know ^ at the beginning, $ at the end, ., the classes \a \d \l \p \s \u \w and, in
// capitals, their complements, * (as few as possible) and ? (one if possible). Characters are
// Unicode's, with the classes of Python's str; in Wapiti's dialect they are bytes of the C locale.
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <string_view>
#include <tuple>

#include "utf8.hpp"
#include "vocabulary.hpp"

namespace chordal {
namespace {

struct Character {
    Py_UCS4 code;
    std::size_t size;  // in bytes
};

struct Unicode {
    // What is not UTF-8 stands for itself, byte by byte.
    static Character at(const char* p, const char* end) {
        const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(p[k]); };
        const auto left = static_cast<std::size_t>(end - p);
        const Py_UCS4 b = byte(0);
        const std::size_t size = b < 0xC0 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
        if (size == 1 || left < size) return {b, 1};
        Py_UCS4 code = b & (0x7Fu >> size);
        for (std::size_t k = 1; k < size; ++k) code = code << 6 | (byte(k) & 0x3Fu);
        return {code, size};
    }
    static bool alpha(Py_UCS4 c) { return Py_UNICODE_ISALPHA(c); }
    static bool digit(Py_UCS4 c) { return Py_UNICODE_ISDECIMAL(c); }
    static bool lower(Py_UCS4 c) { return Py_UNICODE_ISLOWER(c); }
    static bool upper(Py_UCS4 c) { return Py_UNICODE_ISUPPER(c) || Py_UNICODE_ISTITLE(c); }
    static bool space(Py_UCS4 c) { return Py_UNICODE_ISSPACE(c); }
    static bool alnum(Py_UCS4 c) { return Py_UNICODE_ISALNUM(c); }
    static bool punctuation(Py_UCS4 c) { return !alnum(c) && !space(c) && c > 0x20; }
    static Py_UCS4 to_lower(Py_UCS4 c) { return Py_UNICODE_TOLOWER(c); }
    static void append(Py_UCS4 c, std::string& out) { append_utf8(c, out); }
};

struct Bytes {
    static Character at(const char* p, const char*) {
        return {static_cast<unsigned char>(*p), 1};
    }
    static bool digit(Py_UCS4 c) { return c >= '0' && c <= '9'; }
    static bool lower(Py_UCS4 c) { return c >= 'a' && c <= 'z'; }
    static bool upper(Py_UCS4 c) { return c >= 'A' && c <= 'Z'; }
    static bool alpha(Py_UCS4 c) { return lower(c) || upper(c); }
    static bool space(Py_UCS4 c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
    static bool alnum(Py_UCS4 c) { return alpha(c) || digit(c); }
    static bool punctuation(Py_UCS4 c) { return c > ' ' && c < 0x7F && !alnum(c); }
    static Py_UCS4 to_lower(Py_UCS4 c) { return upper(c) ? c + ('a' - 'A') : c; }
    static void append(Py_UCS4 c, std::string& out) { out.push_back(static_cast<char>(c)); }
};

template <class Text>
class Pattern {
public:
    Pattern(const char* p, const char* end) {
        if (p < end && *p == '^') {
            anchored_ = true;
            ++p;
        }
        while (p < end) {
            if (*p == '$' && p + 1 == end) {
                to_the_end_ = true;
                break;
            }
            Element element{'c', 0, '1'};
            if (*p == '.') element.kind = '.';
            if (*p == '\\' && p + 1 < end) {
                ++p;
                if (std::strchr("adlpsuwADLPSUW", *p)) element.kind = *p;
            }
            const Character c = Text::at(p, end);
            element.code = c.code;
            p += c.size;
            if (p < end && (*p == '*' || *p == '?')) element.count = *p++;
            elements_.push_back(element);
        }
    }
    // Where the pattern is found first, as [first, last); false if nowhere.
    bool find(const char* begin, const char* end, const char*& first, const char*& last) const {
        for (first = begin;; first += Text::at(first, end).size) {
            last = first;
            if (here(0, last, end)) return true;
            if (anchored_ || first >= end) return false;
        }
    }

private:
    struct Element {
        char kind;  // c a character, . any, or a class
        Py_UCS4 code;
        char count;  // 1, * or ?
    };

    static bool is(const Element& element, Py_UCS4 c) {
        switch (element.kind) {
            case '.': return true;
            case 'a': return Text::alpha(c);
            case 'd': return Text::digit(c);
            case 'l': return Text::lower(c);
            case 'p': return Text::punctuation(c);
            case 's': return Text::space(c);
            case 'u': return Text::upper(c);
            case 'w': return Text::alnum(c);
            case 'A': return !Text::alpha(c);
            case 'D': return !Text::digit(c);
            case 'L': return !Text::lower(c);
            case 'P': return !Text::punctuation(c);
            case 'S': return !Text::space(c);
            case 'U': return !Text::upper(c);
            case 'W': return !Text::alnum(c);
            default: return element.code == c;
        }
    }
    // Whether elements k, k + 1, … match from p on; p moves to the end of the match.
    bool here(std::size_t k, const char*& p, const char* end) const {
        for (; k < elements_.size(); ++k) {
            const Element& element = elements_[k];
            if (element.count == '*') {
                for (const char* q = p;;) {
                    const char* rest = q;
                    if (here(k + 1, rest, end)) {
                        p = rest;
                        return true;
                    }
                    if (q >= end) return false;
                    const Character c = Text::at(q, end);
                    if (!is(element, c.code)) return false;
                    q += c.size;
                }
            }
            const Character c = p < end ? Text::at(p, end) : Character{0, 0};
            const bool matches = p < end && is(element, c.code);
            if (element.count == '?') {
                const char* rest = p + c.size;
                if (matches && here(k + 1, rest, end)) {
                    p = rest;
                    return true;
                }
                continue;
            }
            if (!matches) return false;
            p += c.size;
        }
        return !to_the_end_ || p >= end;
    }

    bool anchored_ = false, to_the_end_ = false;
    std::vector<Element> elements_;
};

// Letters become X (capital), x (small) or a (neither), digits d; equal neighbours are joined.
template <class Text>
void append_shape(const char* p, const char* end, std::string& out) {
    Py_UCS4 before = 0;
    while (p < end) {
        const Character c = Text::at(p, end);
        p += c.size;
        const Py_UCS4 shape = Text::upper(c.code)   ? 'X'
                              : Text::lower(c.code) ? 'x'
                              : Text::digit(c.code) ? 'd'
                              : Text::alpha(c.code) ? 'a'
                                                    : c.code;
        if (shape == before) continue;
        Text::append(shape, out);
        before = shape;
    }
}

// Cells of a batch: token t, column k is text[cells[2 (t n_columns + k)] .. cells[… + 1]).
struct Cells {
    const char* text;
    const std::uint32_t* limits;
    std::size_t n_columns;
};

template <class Text>
class Program {
public:
    // Each item is kind, small letters, absolute, offset, column, and where its literal or pattern
    // lies in `pool`; each line ends at an item.
    Program(const std::int64_t* items, std::size_t n_items, const std::int64_t* line_ends,
            std::size_t n_lines, const char* pool, bool four_bounds)
        : four_bounds_(four_bounds) {
        for (std::size_t k = 0; k < n_items; ++k, items += 7)
            items_.push_back({static_cast<char>(items[0]), items[1] != 0, items[2] != 0, items[3],
                              static_cast<std::size_t>(items[4]),
                              std::string(pool + items[5], pool + items[6]),
                              Pattern<Text>(pool + items[5], pool + items[6])});
        for (std::size_t line = 0, k = 0; line < n_lines; ++line) {
            Line made{static_cast<std::size_t>(line_ends[line]), true};
            for (; k < made.end; ++k)
                made.plain &= items_[k].kind == 'l' || (items_[k].kind == 'x' && !items_[k].small);
            lines_.push_back(made);
        }
    }

    // The attributes of position t of a sequence that begins at token `first`.
    void apply(const Cells& cells, std::int64_t first, std::int64_t length, std::int64_t t,
               Names& names) {
        const Position position{cells, first, length, t};
        std::size_t k = 0;
        for (const Line& line : lines_) {
            if (!line.plain || !copied(position, k, line.end, names.text))
                for (std::size_t i = k; i < line.end; ++i) {
                    const std::string_view cell = source(items_[i], position);
                    value(items_[i], cell.data(), cell.data() + cell.size(), names.text);
                }
            k = line.end;
            names.finish();
        }
    }

private:
    struct Item {
        char kind;
        bool small, absolute;
        std::int64_t offset;
        std::size_t column;
        std::string literal;
        Pattern<Text> pattern;
    };
    struct Line {
        std::size_t end;  // among the items
        bool plain;       // literals and cells as they are
    };
    struct Position {
        const Cells& cells;
        std::int64_t first, length, t;
    };

    // What an item is made of: its literal, or a cell, or what stands for one outside.
    std::string_view source(const Item& item, const Position& p) {
        if (item.kind == 'l') return item.literal;
        const std::int64_t at =
            item.offset + (item.absolute ? (item.offset < 0 ? p.length : -1) : p.t);
        if (at < 0 || at >= p.length) return bound_ = outside(at, p.length);
        const std::uint32_t* cell =
            p.cells.limits +
            2 * (static_cast<std::size_t>(p.first + at) * p.cells.n_columns + item.column);
        return {p.cells.text + cell[0], cell[1] - cell[0]};
    }

    // A plain line, put together in a buffer, since most pieces are of a few bytes; false if it
    // is too long for that.
    bool copied(const Position& position, std::size_t k, std::size_t end, std::string& out) {
        char* to = buffer_;
        for (; k < end; ++k) {
            const std::string_view piece = source(items_[k], position);
            if (piece.size() > static_cast<std::size_t>(buffer_ + sizeof buffer_ - to)) return false;
            copy_few(piece.data(), piece.size(), to);
            to += piece.size();
        }
        out.append(buffer_, to);
        return true;
    }
    // memcpy without a call for up to 16 bytes: parts that may overlap.
    static void copy_few(const char* from, std::size_t n, char* to) {
        if (n > 16) {
            std::memcpy(to, from, n);
        } else if (n >= 8) {
            std::memcpy(to, from, 8);
            std::memcpy(to + n - 8, from + n - 8, 8);
        } else if (n >= 4) {
            std::memcpy(to, from, 4);
            std::memcpy(to + n - 4, from + n - 4, 4);
        } else if (n > 0) {
            to[0] = from[0];
            to[n / 2] = from[n / 2];
            to[n - 1] = from[n - 1];
        }
    }

    void value(const Item& item, const char* begin, const char* end, std::string& out) const {
        const std::size_t before = out.size();
        const char *first = begin, *last = end;
        switch (item.kind) {
            case 'l': out += item.literal; return;
            case 't':
                out += item.pattern.find(begin, end, first, last) ? "true" : "false";
                return;
            case 's': append_shape<Text>(begin, end, out); break;
            case 'm':
                if (!item.pattern.find(begin, end, first, last)) return;
                [[fallthrough]];
            default: out.append(first, last);
        }
        if (item.small) to_lower(before, out);
    }
    static void to_lower(std::size_t from, std::string& out) {
        bool ascii = true;
        for (std::size_t k = from; k < out.size(); ++k) {
            if (static_cast<unsigned char>(out[k]) >= 0x80) ascii = false;
            if (out[k] >= 'A' && out[k] <= 'Z') out[k] = static_cast<char>(out[k] + 32);
        }
        if (ascii || std::is_same_v<Text, Bytes>) return;
        const std::string copy(out, from);
        out.resize(from);
        for (const char *p = copy.data(), *end = p + copy.size(); p < end;) {
            const Character c = Text::at(p, end);
            if (c.size == 1)
                out.push_back(*p);
            else
                Text::append(Text::to_lower(c.code), out);
            p += c.size;
        }
    }
    // CRF++ calls what lies outside _B-1, _B+1 and so on; Wapiti _x-1, and from five on _x-#.
    std::string outside(std::int64_t at, std::int64_t length) const {
        const std::int64_t distance = at < 0 ? -at : at - length + 1;
        std::string name = four_bounds_ ? "_x" : "_B";
        name += at < 0 ? '-' : '+';
        if (four_bounds_ && distance > 4)
            name += '#';
        else
            name += std::to_string(distance);
        return name;
    }

    std::vector<Item> items_;
    std::vector<Line> lines_;
    bool four_bounds_;
    std::string bound_;
    char buffer_[256];
};

// False if the user wants to stop.
template <class Text>
bool expand(Program<Text>& program, const Cells& cells, const std::int64_t* lengths,
            std::size_t n_sequences, std::int64_t begin, Names& names) {
    std::int64_t first = 0;
    std::size_t work = 0;
    for (std::size_t k = 0; k < n_sequences; ++k) {
        for (std::int64_t t = begin; t < lengths[k]; ++t) {
            program.apply(cells, first, lengths[k], t, names);
            names.end_row();
            if (++work % 65536 == 0 && interrupted()) return false;
        }
        first += lengths[k];
    }
    names.look_up();
    return true;
}

}  // namespace

static const Binding binding([](nb::module_& m) {
    m.def(
        "template_read",
        [](Input<std::int64_t> items, Input<std::int64_t> line_ends, nb::bytes pool, bool wapiti,
           nb::bytes text, Input<std::uint32_t> cells, std::size_t n_columns,
           Input<std::int64_t> lengths, std::int64_t begin, Vocabulary& vocabulary, bool grow) {
            Names names(vocabulary, grow);
            const Cells all{text.c_str(), cells.data(), n_columns};
            const auto run = [&]<class Text>(Text) {
                Program<Text> program(items.data(), items.size() / 7, line_ends.data(),
                                      line_ends.size(), pool.c_str(), wapiti);
                return expand(program, all, lengths.data(), lengths.size(), begin, names);
            };
            bool done;
            {
                nb::gil_scoped_release unlocked;
                done = wapiti ? run(Bytes()) : run(Unicode());
            }
            if (!done) throw nb::python_error();
            if (grow) vocabulary.shrink();
            return std::make_tuple(array_of(std::move(names.ids)),
                                   array_of(std::move(names.row_offsets)));
        },
        "Ids and offsets of the attributes of every position from `begin` on.");
});

}  // namespace chordal
