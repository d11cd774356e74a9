//! From the text of an expression to what is run.
//!
//! Owns the bounds on a text, the words of its errors, and the translation of what the CEL parser gives. Refuses here what
//! would otherwise only fail when it is run: unknown functions, wrong numbers of arguments, bad patterns.
//! Start reading at [`compile`].

use std::sync::Arc;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::functions::{self, Function};
use super::program::{Logic, Loop, LoopKind, Node, Operator, Path, Pattern, Root, Step};
use super::tokens::{self, Kind, Token};
use super::{ParseError, Value};
use crate::limits;

/// Parses `text`.
pub(super) fn compile(text: &str) -> Result<Node, ParseError> {
    check_size(text)?;
    if let Some(path) = plain_path(text) {
        return Ok(Node::Path(path));
    }
    check_nesting(text)?;
    // Not `cel::Parser`: unoptimised, that one takes 128 KiB of stack for each bracket, this one about 16.
    let parsed = cel::parser::PrattParser::new().parse(text);
    let expression = parsed.map_err(|errors| syntax_error(text, &errors.errors))?;
    Compiler { text, bound: Vec::new(), depth: 0 }.node(expression)
}

fn check_size(text: &str) -> Result<(), ParseError> {
    if text.trim().is_empty() {
        return Err(error(0, "an expression is expected, found nothing"));
    }
    if text.len() > limits::EXPRESSION_BYTES_MAX {
        let (length, limit) = (text.len(), limits::EXPRESSION_BYTES_MAX);
        let message = format!("expression is {length} bytes, the limit is {limit} (`expression_bytes_max`)");
        return Err(error(text.floor_char_boundary(limit), message));
    }
    Ok(())
}

/// The parser works on the stack, so what would use too much of it is refused before.
fn check_nesting(text: &str) -> Result<(), ParseError> {
    let mut depth = 0_usize;
    // What follows a `?` is inside of it, up to nobody knows where before it is parsed.
    let mut conditions = 0_usize;
    for (count, token) in tokens::tokens(text).enumerate() {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            Kind::OpenText => return Err(error(token.start, "this string is not closed")),
            Kind::Other if text[token.start..].starts_with('?') => conditions += 1,
            Kind::Name | Kind::Text | Kind::Other => {}
        }
        if depth + conditions > limits::EXPRESSION_NESTING_MAX {
            let limit = limits::EXPRESSION_NESTING_MAX;
            let message = format!("brackets and conditions are nested deeper than {limit} (`expression_nesting_max`)");
            return Err(error(token.start, message));
        }
        if count >= limits::EXPRESSION_WORDS_MAX {
            let limit = limits::EXPRESSION_WORDS_MAX;
            return Err(error(token.start, format!("expression has more than {limit} words (`expression_words_max`)")));
        }
    }
    Ok(())
}

/// `state.a.b`, the most common expression by far, needs no parser.
fn plain_path(text: &str) -> Option<Path> {
    // Names that mean something else to the parser.
    const TAKEN: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let mut names = text.trim().split('.');
    let plain = |name: &&str| tokens::is_name(name) && !TAKEN.contains(name);
    let root = Root::Variable(names.next().filter(plain)?.into());
    let steps =
        names.map(|name| Some(name).filter(plain).map(|name| Step::Field(name.into()))).collect::<Option<_>>()?;
    Some(Path { root, steps })
}

fn error(offset: usize, message: impl Into<String>) -> ParseError {
    ParseError { message: message.into(), offset }
}

/// The first error of the parser, in our words.
fn syntax_error(text: &str, errors: &[cel::ParseError]) -> ParseError {
    // Those without a line only say that it gave up.
    let Some(first) = errors.iter().find(|error| error.pos.0 > 0) else {
        return error(0, "this is not an expression");
    };
    let offset = byte_offset(text, first.pos);
    let found = tokens::next_token(text, offset).map(|token| &text[token.start..token.end]);
    let said = first.msg.as_str();
    let message = match (said, found) {
        _ if said.contains("has()") => "`has` needs a field, as in `has(state.name)`".to_owned(),
        _ if said.contains("simple name") => "a plain name is expected here, as in `list.map(x, x + 1)`".to_owned(),
        _ if said.contains("int literal") => "this number does not fit into 64 bits".to_owned(),
        _ if said.contains("double literal") => "this number is too large".to_owned(),
        (_, None) => "the expression ends too early".to_owned(),
        (_, Some("=")) => "unexpected `=`, `==` compares".to_owned(),
        (_, Some("&")) => "unexpected `&`, `&&` means and".to_owned(),
        (_, Some("|")) => "unexpected `|`, `||` means or".to_owned(),
        (_, Some("and")) => "unexpected `and`, write `&&`".to_owned(),
        (_, Some("or")) => "unexpected `or`, write `||`".to_owned(),
        (_, Some(word)) if said.contains("reserved") => format!("`{}` is a reserved word", shortened(word)),
        (_, Some(word)) if word.contains(['"', '\'']) => {
            format!("unexpected {}, or there is an escape in it that is not known", shortened(word))
        }
        (_, Some(word)) => format!("unexpected `{}`", shortened(word)),
    };
    error(offset, message)
}

fn shortened(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}

/// The parser counts lines and, within them, bytes, both from one.
fn byte_offset(text: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line).unwrap_or(1).max(1);
    let column = usize::try_from(column).unwrap_or(1).max(1);
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    text.floor_char_boundary(start + column - 1)
}

struct Compiler<'a> {
    text: &'a str,
    /// The variables of the macros around, outermost first.
    bound: Vec<String>,
    /// How many operations are around.
    depth: usize,
}

impl Compiler<'_> {
    fn node(&mut self, expression: IdedExpr) -> Result<Node, ParseError> {
        if self.depth == limits::EXPRESSION_DEPTH_MAX {
            let limit = limits::EXPRESSION_DEPTH_MAX;
            return Err(error(0, format!("operations are piled up higher than {limit} (`expression_depth_max`)")));
        }
        self.depth += 1;
        let node = self.node_inside(expression);
        self.depth -= 1;
        node
    }

    fn node_inside(&mut self, expression: IdedExpr) -> Result<Node, ParseError> {
        match expression.expr {
            Expr::Literal(literal) => self.literal(&literal),
            Expr::Ident(name) => Ok(Node::Path(Path { root: self.root(&name), steps: Vec::new() })),
            Expr::Select(select) => {
                let inner = self.node(*select.operand)?;
                let field = Arc::from(select.field);
                match (select.test, inner) {
                    (true, inner) => Ok(Node::Has(Box::new(inner), field)),
                    (false, inner) => Ok(with_step(inner, Step::Field(field))),
                }
            }
            Expr::List(list) => Ok(Node::List(self.nodes(list.elements)?)),
            Expr::Map(map) => {
                let mut fields = Vec::with_capacity(map.entries.len());
                for entry in map.entries {
                    match entry.expr {
                        EntryExpr::MapEntry(entry) => fields.push((self.node(entry.key)?, self.node(entry.value)?)),
                        EntryExpr::StructField(_) => return Err(self.refuse_all()),
                    }
                }
                Ok(Node::Object(fields))
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(*comprehension),
            Expr::Struct(message) => {
                let name = message.type_name;
                let text = format!("there is no message type `{name}`; an object is written `{{\"name\": value}}`");
                Err(self.refuse(|token, word| token.kind == Kind::Name && name.ends_with(word), text))
            }
            Expr::Unspecified => Err(self.refuse_all()),
        }
    }

    fn nodes(&mut self, expressions: Vec<IdedExpr>) -> Result<Vec<Node>, ParseError> {
        expressions.into_iter().map(|expression| self.node(expression)).collect()
    }

    fn pair(&mut self, args: Vec<IdedExpr>) -> Result<Box<[Node; 2]>, ParseError> {
        <[Node; 2]>::try_from(self.nodes(args)?).map(Box::new).map_err(|_| self.refuse_all())
    }

    fn root(&self, name: &str) -> Root {
        match name.strip_prefix('.') {
            // A leading dot means the variable outside of all macros.
            Some(outside) => Root::Variable(outside.into()),
            None => match self.bound.iter().rposition(|bound| bound == name) {
                Some(slot) => Root::Local(slot),
                None => Root::Variable(name.into()),
            },
        }
    }

    fn literal(&self, literal: &LiteralValue) -> Result<Node, ParseError> {
        Ok(Node::Literal(match literal {
            LiteralValue::Null => Value::Null,
            LiteralValue::Boolean(truth) => Value::Bool(*truth.inner()),
            LiteralValue::Int(number) => Value::Int(*number.inner()),
            LiteralValue::UInt(number) => Value::from(*number.inner()),
            LiteralValue::Double(number) => Value::Float(*number.inner()),
            LiteralValue::String(text) => Value::from(text.inner()),
            LiteralValue::Bytes(_) => {
                let is_bytes = |word: &str| word.trim_start_matches(['r', 'R']).starts_with(['b', 'B']);
                let is_literal = |token: Token, word: &str| token.kind == Kind::Text && is_bytes(word);
                return Err(self.refuse(is_literal, "values are JSON, which has no bytes; write a string"));
            }
        }))
    }

    fn call(&mut self, call: CallExpr) -> Result<Node, ParseError> {
        if let Some(operator) = binary_operator(&call.func_name) {
            return Ok(Node::Binary(operator, self.pair(call.args)?));
        }
        match call.func_name.as_str() {
            operators::LOGICAL_AND => Ok(Node::Logic(Logic::And, self.pair(call.args)?)),
            operators::LOGICAL_OR => Ok(Node::Logic(Logic::Or, self.pair(call.args)?)),
            operators::INDEX => Ok(index(*self.pair(call.args)?)),
            operators::CONDITIONAL => match <[Node; 3]>::try_from(self.nodes(call.args)?) {
                Ok(nodes) => Ok(Node::Conditional(Box::new(nodes))),
                Err(_) => Err(self.refuse_all()),
            },
            unary @ (operators::LOGICAL_NOT | operators::NEGATE) => match <[Node; 1]>::try_from(self.nodes(call.args)?)
            {
                Ok([inner]) if unary == operators::LOGICAL_NOT => Ok(Node::Not(Box::new(inner))),
                Ok([inner]) => Ok(Node::Negate(Box::new(inner))),
                Err(_) => Err(self.refuse_all()),
            },
            _ => self.function(call),
        }
    }

    /// `x.f(y)` and `f(x, y)` are the same call.
    fn function(&mut self, call: CallExpr) -> Result<Node, ParseError> {
        let name = call.func_name;
        let function = Function::named(&name).ok_or_else(|| self.refuse_call(&name, functions::unknown(&name)))?;
        let arguments = call.target.into_iter().map(|target| *target).chain(call.args).collect();
        let mut arguments = self.nodes(arguments)?;
        if !function.takes().contains(&arguments.len()) {
            return Err(self.refuse_call(&name, function.usage()));
        }
        if function != Function::Matches {
            return Ok(Node::Call(function, arguments));
        }
        let pattern = arguments.swap_remove(1);
        let pattern = if let Node::Literal(Value::String(text)) = &pattern {
            Pattern::Known(functions::pattern(text).map_err(|problem| self.refuse_call(&name, problem))?)
        } else {
            Pattern::Computed(Box::new(pattern))
        };
        Ok(Node::Matches(Box::new(arguments.swap_remove(0)), pattern))
    }

    /// The parser has already unfolded the macros; each is known by how its result begins.
    fn comprehension(&mut self, unfolded: ComprehensionExpr) -> Result<Node, ParseError> {
        let range = self.node(unfolded.iter_range)?;
        self.bound.push(unfolded.iter_var);
        let inner = match (unfolded.accu_init.expr, unfolded.loop_step.expr) {
            (Expr::Literal(LiteralValue::Boolean(begin)), Expr::Call(step)) => {
                let kind = if *begin.inner() { LoopKind::All } else { LoopKind::Exists };
                self.argument(step, 1).map(|body| (kind, None, body))
            }
            (Expr::Literal(LiteralValue::Int(_)), Expr::Call(step)) => {
                self.argument(step, 0).map(|body| (LoopKind::ExistsOne, None, body))
            }
            (Expr::List(_), Expr::Call(step)) => {
                self.appended(step).map(|(filter, body)| (LoopKind::Map, filter, body))
            }
            _ => Err(self.refuse_all()),
        };
        self.bound.pop();
        let (kind, filter, body) = inner?;
        Ok(Node::Loop(Box::new(Loop { kind, range, filter, body })))
    }

    /// What `result + [body]` or `filter ? result + [body] : result` adds to a list.
    fn appended(&mut self, mut step: CallExpr) -> Result<(Option<Node>, Node), ParseError> {
        let mut filter = None;
        if step.func_name == operators::CONDITIONAL && step.args.len() == 3 {
            let append = step.args.swap_remove(1);
            filter = Some(self.node(step.args.swap_remove(0))?);
            let Expr::Call(append) = append.expr else { return Err(self.refuse_all()) };
            step = append;
        }
        if let Node::List(mut body) = self.argument(step, 1)?
            && let Some(body) = body.pop()
        {
            return Ok((filter, body));
        }
        Err(self.refuse_all())
    }

    fn argument(&mut self, mut call: CallExpr, index: usize) -> Result<Node, ParseError> {
        match index < call.args.len() {
            true => self.node(call.args.swap_remove(index)),
            false => Err(self.refuse_all()),
        }
    }

    /// The parser keeps no places of what it understood, so the word that is refused is looked for.
    fn refuse(&self, word: impl Fn(Token, &str) -> bool, message: impl Into<String>) -> ParseError {
        let text = self.text;
        let place = tokens::tokens(text).find(|token| word(*token, &text[token.start..token.end]));
        error(place.map_or(0, |token| token.start), message)
    }

    fn refuse_call(&self, name: &str, message: String) -> ParseError {
        let is_called = |end: usize| {
            tokens::next_token(self.text, end).is_some_and(|next| self.text[next.start..].starts_with('('))
        };
        self.refuse(|token, word| word == name && is_called(token.end), message)
    }

    /// For what the grammar does not let through.
    fn refuse_all(&self) -> ParseError {
        error(0, "this is not an expression")
    }
}

fn with_step(inner: Node, step: Step) -> Node {
    match (inner, step) {
        (Node::Path(mut path), step) => {
            path.steps.push(step);
            Node::Path(path)
        }
        (computed, Step::Field(field)) => Node::Field(Box::new(computed), field),
        (computed, Step::Item(index)) => {
            let index = i64::try_from(index).unwrap_or(i64::MAX);
            Node::Index(Box::new([computed, Node::Literal(Value::Int(index))]))
        }
    }
}

fn index([inner, index]: [Node; 2]) -> Node {
    if let Node::Literal(Value::String(field)) = &index {
        return with_step(inner, Step::Field(Arc::clone(field)));
    }
    if let Node::Literal(Value::Int(item)) = &index
        && let Ok(item) = usize::try_from(*item)
    {
        return with_step(inner, Step::Item(item));
    }
    Node::Index(Box::new([inner, index]))
}

fn binary_operator(name: &str) -> Option<Operator> {
    Some(match name {
        operators::ADD => Operator::Add,
        operators::SUBSTRACT => Operator::Subtract,
        operators::MULTIPLY => Operator::Multiply,
        operators::DIVIDE => Operator::Divide,
        operators::MODULO => Operator::Remainder,
        operators::EQUALS => Operator::Equal,
        operators::NOT_EQUALS => Operator::NotEqual,
        operators::LESS => Operator::Less,
        operators::LESS_EQUALS => Operator::LessOrEqual,
        operators::GREATER => Operator::Greater,
        operators::GREATER_EQUALS => Operator::GreaterOrEqual,
        operators::IN => Operator::In,
        _ => return None,
    })
}
