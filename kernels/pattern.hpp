// Patterns on text, and its shape, as templates know them.
//
// Patterns know ^ at the beginning, $ at the end, ., the classes \a \d \l \p \s \u \w and, in
// capitals, their complements, * (as few as possible) and ? (one if possible). Characters are
// Unicode's, with the classes of Python's str; in Wapiti's dialect they are bytes of the C locale.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "patience.hpp"
#include "unicode_classes.hpp"
#include "utf8.hpp"

namespace chordal {

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
    static bool alpha(Py_UCS4 c) { return unicode::alpha(c); }
    static bool digit(Py_UCS4 c) { return unicode::decimal(c); }
    static bool lower(Py_UCS4 c) { return unicode::lower(c); }
    static bool upper(Py_UCS4 c) { return unicode::upper_or_title(c); }
    static bool space(Py_UCS4 c) { return unicode::space(c); }
    static bool alnum(Py_UCS4 c) { return unicode::alnum(c); }
    static bool punctuation(Py_UCS4 c) { return !alnum(c) && !space(c) && c > 0x20; }
    static Py_UCS4 to_lower(Py_UCS4 c) { return unicode::to_lower(c); }
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
            plain_ &= element.count == '1';
            elements_.push_back(element);
        }
    }
    // Where the pattern is found first, as [first, last); false if nowhere. Time is in proportion to the
    // text times the pattern, and the user may stop it.
    bool find(const char* begin, const char* end, const char*& first, const char*& last) const {
        return plain_ ? find_plain(begin, end, first, last) : find_counted(begin, end, first, last);
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
    // Without * and ? there is nothing to choose.
    bool find_plain(const char* begin, const char* end, const char*& first, const char*& last) const {
        CHORDAL_ISA::Listening listening;
        for (first = begin;; first += Text::at(first, end).size) {
            last = first;
            std::size_t k = 0;
            for (; k < elements_.size() && last < end; ++k) {
                const Character c = Text::at(last, end);
                if (!is(elements_[k], c.code)) break;
                last += c.size;
            }
            if (k == elements_.size() && (!to_the_end_ || last >= end)) return true;
            if (anchored_ || first >= end) return false;
            listening.spend(4 * (k + 1));
        }
    }

    // A match that has come as far as an element, and where it began.
    struct Thread {
        std::size_t element;
        const char* first;
    };
    // Threads at one place of the text, those that are preferred first; of several at one element, the
    // first.
    struct Threads {
        std::vector<Thread> list;
        std::vector<char> held;
        std::vector<std::size_t> stars;

        explicit Threads(std::size_t n) : held(n) {}
        bool add(std::size_t k, const char* first) {
            if (held[k]) return false;
            held[k] = 1;
            list.push_back({k, first});
            return true;
        }
        void clear() {
            for (const Thread& thread : list) held[thread.element] = 0;
            list.clear();
        }
    };

    // Adds element k, and those behind it that may be reached without a character. A * is left as
    // soon as possible, so it comes after them; a ? is tried first.
    void reach(std::size_t k, const char* first, Threads& to) const {
        to.stars.clear();
        for (; !to.held[k]; ++k) {
            const char count = k < elements_.size() ? elements_[k].count : '1';
            if (count == '*') {
                to.held[k] = 1;  // its place in the list is kept for later
                to.stars.push_back(k);
                continue;
            }
            to.add(k, first);
            if (count == '1') break;
        }
        for (; !to.stars.empty(); to.stars.pop_back()) to.list.push_back({to.stars.back(), first});
    }

    // All matches at once, character by character (Thompson 1968; the preferences are Pike's).
    bool find_counted(const char* begin, const char* end, const char*& first, const char*& last) const {
        const std::size_t size = elements_.size();
        Threads now(size + 1), next(size + 1);
        CHORDAL_ISA::Listening listening;
        bool found = false;
        for (const char* p = begin;;) {
            if (!found && (p == begin || !anchored_)) reach(0, p, now);
            if (now.list.empty()) break;
            const Character c = p < end ? Text::at(p, end) : Character{0, 0};
            for (const Thread& thread : now.list) {
                if (thread.element == size) {
                    if (to_the_end_ && p < end) continue;
                    found = true;
                    first = thread.first;
                    last = p;
                    break;  // the rest is not preferred to this
                }
                const Element& element = elements_[thread.element];
                if (p < end && is(element, c.code))
                    reach(thread.element + (element.count != '*'), thread.first, next);
            }
            listening.spend(8 * (now.list.size() + 1));
            now.clear();
            std::swap(now, next);
            if (p >= end) break;
            p += c.size;
        }
        return found;
    }

    bool anchored_ = false, to_the_end_ = false, plain_ = true;
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

}  // namespace chordal
