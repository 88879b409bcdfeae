// SPDX-License-Identifier: Apache-2.0
// Go's package fmt.
#include "recipe/govalue/format.hpp"

#include <algorithm>

#include "recipe/govalue/convert.hpp"
#include "recipe/govalue/printer.hpp"

namespace kmm::recipe::tmpl {

namespace {

/// The whole of Sprintf: the format and the arguments it takes.
class Formatter {
public:
    Formatter(std::string_view format, const List& arguments) : format_(format), arguments_(arguments) {}

    std::string run() {
        while (at_ < format_.size()) {
            const std::size_t percent = std::min(format_.find('%', at_), format_.size());
            printer_.out += format_.substr(at_, percent - at_);
            at_ = percent;
            if (at_ < format_.size()) { directive(); }
            check_size(printer_.out.size());
        }
        extra();
        return std::move(printer_.out);
    }

private:
    std::string_view format_;
    const List& arguments_;
    std::size_t at_ = 0;
    std::size_t next_ = 0;
    bool reordered_ = false, good_ = true, after_index_ = false;
    Printer printer_;

    void read_flags() {
        PrintFlags& f = printer_.flags_;
        f = PrintFlags{};
        for (; at_ < format_.size(); ++at_) {
            switch (format_[at_]) {
                case '#': f.sharp = true; break;
                case '0': f.zero = true; break;
                case '+': f.plus = true; break;
                case '-': f.minus = true; break;
                case ' ': f.space = true; break;
                default: return;
            }
        }
    }

    bool read_number(int& number) {
        const std::size_t start = at_;
        number = 0;
        for (; at_ < format_.size() && is_digit(static_cast<unsigned char>(format_[at_])); ++at_) {
            if (number > k_width_max) { return at_ = format_.size(), number = 0, false; }
            number = number * 10 + (format_[at_] - '0');
        }
        return at_ > start;
    }

    void read_index() {
        if (at_ >= format_.size() || format_[at_] != '[') { return; }
        reordered_ = true;
        const std::size_t close = format_.find(']', at_);
        if (close == std::string_view::npos) {
            good_ = false;
            ++at_;
            return;
        }
        const auto number = parse_uint(format_.substr(at_ + 1, close - at_ - 1), 10);
        at_ = close + 1;
        if (number && *number >= 1 && *number <= arguments_.size()) {
            next_ = static_cast<std::size_t>(*number - 1);
            after_index_ = true;
        } else {
            good_ = false;
        }
    }

    bool star(int& number) {
        if (next_ >= arguments_.size()) { return false; }
        const Value& arg = arguments_[next_++];
        const bool right =
            (arg.is_int() || arg.is_uint()) && arg.as_int() <= k_width_max && arg.as_int() >= -k_width_max;
        if (right) { number = static_cast<int>(arg.as_int()); }
        return right;
    }

    void width_and_precision() {
        PrintFlags& f = printer_.flags_;
        read_index();
        if (at_ < format_.size() && format_[at_] == '*') {
            ++at_;
            f.has_width = star(f.width);
            if (!f.has_width) { printer_.out += "%!(BADWIDTH)"; }
            if (f.width < 0) {
                f.width = -f.width;
                f.minus = true;
                f.zero = false;
            }
            after_index_ = false;
        } else {
            f.has_width = read_number(f.width);
            if (after_index_ && f.has_width) { good_ = false; }
        }
        if (at_ < format_.size() && format_[at_] == '.') {
            ++at_;
            if (after_index_) { good_ = false; }
            read_index();
            if (at_ < format_.size() && format_[at_] == '*') {
                ++at_;
                f.has_precision = star(f.precision);
                if (f.precision < 0) {
                    f.precision = 0;
                    f.has_precision = false;
                }
                if (!f.has_precision) { printer_.out += "%!(BADPREC)"; }
                after_index_ = false;
            } else {
                f.has_precision = read_number(f.precision);
                if (!f.has_precision) {
                    f.precision = 0;
                    f.has_precision = true;
                }
            }
        }
        if (!after_index_) { read_index(); }
    }

    void directive() {
        ++at_;
        good_ = true;
        after_index_ = false;
        read_flags();
        width_and_precision();
        PrintFlags& f = printer_.flags_;
        if (at_ >= format_.size()) {
            printer_.out += "%!(NOVERB)";
            return;
        }
        const Decoded d = decode(format_, at_);
        at_ += d.width;
        const char32_t verb = d.rune;
        if (verb == '%') {
            printer_.out += '%';
        } else if (!good_) {
            bare("%!", verb, "(BADINDEX)");
        } else if (next_ >= arguments_.size()) {
            bare("%!", verb, "(MISSING)");
        } else {
            if (verb == 'v') {
                f.sharp_v = f.sharp;
                f.sharp = false;
                f.plus_v = f.plus;
                f.plus = false;
            }
            if (f.minus) { f.zero = false; }
            printer_.argument(arguments_[next_++], verb);
        }
    }

    void bare(std::string_view before, char32_t verb, std::string_view after) {
        printer_.out += before;
        append_rune(printer_.out, verb);
        printer_.out += after;
    }

    void extra() {
        if (reordered_ || next_ >= arguments_.size()) { return; }
        printer_.flags_ = PrintFlags{};
        printer_.out += "%!(EXTRA ";
        for (std::size_t i = next_; i < arguments_.size(); ++i) {
            if (i > next_) { printer_.out += ", "; }
            if (arguments_[i].is_nil()) {
                printer_.out += "<nil>";
            } else {
                printer_.out += type_name(arguments_[i]) + '=';
                printer_.value(arguments_[i], 'v', 0);
            }
        }
        printer_.out += ')';
    }
};

}  // namespace

Value printable(const Value& value) {
    if (value.is_nil()) { return Value::string("<no value>"); }
    const Record* record = value.as_record();
    if (record == nullptr || !record->pointer || record->has_text) { return value; }
    auto pointee = std::make_shared<Record>(*record);
    pointee->pointer = false;
    return Value::record(std::move(pointee));
}

std::string print_value(const Value& value) {
    if (value.is_text()) { return value.text(); }
    Printer printer;
    printer.argument(value, 'v');
    return std::move(printer.out);
}

std::string print_with_addresses(const Value& value) {
    Printer printer;
    printer.allow_addresses = true;
    printer.argument(value, 'v');
    return std::move(printer.out);
}

std::string sprint(const List& arguments) {
    std::string out;
    bool before_text = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const bool text = arguments[i].is_text();
        if (i > 0 && !text && !before_text) { out += ' '; }
        out += print_value(arguments[i]);
        check_size(out.size());
        before_text = text;
    }
    return out;
}

std::string sprintln(const List& arguments) {
    std::string out;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (i > 0) { out += ' '; }
        out += print_value(arguments[i]);
        check_size(out.size());
    }
    return out + '\n';
}

std::string sprintf(std::string_view format, const List& arguments) { return Formatter(format, arguments).run(); }

}  // namespace kmm::recipe::tmpl
