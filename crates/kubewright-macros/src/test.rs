//! `#[kubewright_cluster::test]`: arguments and expansion.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use syn::{
    Error, FnArg, Ident, ItemFn, LitInt, LitStr, Result, Token,
    parse::{Parse, ParseStream, Parser as _},
    punctuated::Punctuated,
};

/// One argument of the attribute.
enum Argument {
    Nodes(LitInt),
    Controllers { all: bool },
    Start(LitStr),
    Real,
}

impl Argument {
    fn name(&self) -> &'static str {
        match self {
            Self::Nodes(_) => "nodes",
            Self::Controllers { .. } => "controllers",
            Self::Start(_) => "start",
            Self::Real => "real",
        }
    }
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        if name == "real" {
            return Ok(Self::Real);
        }
        let known = ["nodes", "controllers", "start"].iter().any(|known| name == known);
        if !known {
            let what =
                format!("there is no argument `{name}`: use `nodes`, `controllers`, `start` or `real`");
            return Err(Error::new(name.span(), what));
        }
        input.parse::<Token![=]>().map_err(|error| {
            Error::new(error.span(), format!("`{name}` needs a value: write `{name} = …`"))
        })?;
        if name == "nodes" {
            let number: LitInt = input
                .parse()
                .map_err(|error| Error::new(error.span(), "`nodes` is a number, such as `nodes = 3`"))?;
            number.base10_parse::<u32>()?;
            Ok(Self::Nodes(number))
        } else if name == "start" {
            let time = input.parse().map_err(|error| {
                Error::new(error.span(), "`start` is a time, such as `start = \"2026-01-01T00:00:00Z\"`")
            })?;
            Ok(Self::Start(time))
        } else {
            let which = |span| Error::new(span, "`controllers` are `all` or `none`");
            let choice: Ident = input.parse().map_err(|error| which(error.span()))?;
            match choice.to_string().as_str() {
                "all" => Ok(Self::Controllers { all: true }),
                "none" => Ok(Self::Controllers { all: false }),
                _ => Err(which(choice.span())),
            }
        }
    }
}

/// Arguments of the attribute.
#[derive(Default)]
struct Arguments {
    nodes: Option<LitInt>,
    no_controllers: bool,
    start: Option<LitStr>,
    real: bool,
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let given = Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens)?;
        let mut arguments = Self::default();
        let mut seen = Vec::new();
        for argument in given {
            let name = argument.name();
            if seen.contains(&name) {
                return Err(Error::new(Span::call_site(), format!("`{name}` is given twice")));
            }
            seen.push(name);
            match argument {
                Argument::Nodes(number) => arguments.nodes = Some(number),
                Argument::Controllers { all } => arguments.no_controllers = !all,
                Argument::Start(time) => arguments.start = Some(time),
                Argument::Real => arguments.real = true,
            }
        }
        if arguments.real && (arguments.no_controllers || arguments.start.is_some()) {
            let what = "a real control plane has its own controllers and its own time: `real` goes with `nodes` only";
            return Err(Error::new(Span::call_site(), what));
        }
        Ok(arguments)
    }

    /// The setup of the cluster as a chain of calls.
    fn setup(&self, name: &Ident) -> TokenStream {
        let name = name.to_string();
        let mut setup = quote!(::kubewright_cluster::testing::Setup::new(
            ::core::concat!(::core::module_path!(), "::", #name)
        ));
        if self.no_controllers {
            setup.extend(quote!(.controllers(::kubewright_cluster::Controllers::None)));
        }
        if let Some(nodes) = &self.nodes {
            setup.extend(quote!(.nodes(#nodes)));
        }
        if let Some(start) = &self.start {
            setup.extend(quote!(.starting_at(#start)));
        }
        setup
    }
}

/// Checks that the function is a test with a cluster.
fn check(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    let shape = "write `async fn name(cluster: Cluster)`, with or without `-> Result<(), E>`";
    let refuse = |span, why: &str| Err(Error::new(span, format!("{why}: {shape}")));
    if signature.asyncness.is_none() {
        return refuse(signature.fn_token.span, "a test with a cluster is `async`");
    }
    if let Some(constness) = &signature.constness {
        return refuse(constness.span, "a test with a cluster is not `const`");
    }
    if !signature.generics.params.is_empty() || signature.generics.where_clause.is_some() {
        return refuse(signature.ident.span(), "a test has no generic parameters");
    }
    let mut inputs = signature.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (Some(FnArg::Typed(_)), None) => Ok(()),
        (None, _) => refuse(signature.paren_token.span.join(), "the test does not take its cluster"),
        (Some(FnArg::Receiver(_)), _) => refuse(signature.paren_token.span.join(), "a test has no `self`"),
        (Some(_), Some(_)) => {
            refuse(signature.paren_token.span.join(), "a test takes its cluster and nothing else")
        }
    }
}

/// Expands an annotated function into its tests.
pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let mut function: ItemFn = syn::parse2(item).map_err(|error| {
        Error::new(error.span(), format!("only a function can be a test with a cluster: {error}"))
    })?;
    check(&function)?;
    let name = function.sig.ident.clone();
    let output = function.sig.output.clone();
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let setup = arguments.setup(&name);
    if !arguments.real {
        return Ok(quote! {
            #(#attributes)*
            #[::core::prelude::v1::test]
            #visibility fn #name() #output {
                #function
                #setup.run(#name)
            }
        });
    }
    // Both tests share one body, which is compiled once.
    let body = format_ident!("__{name}");
    let on_real = format_ident!("{name}_on_a_real_control_plane");
    function.sig.ident = body.clone();
    let real_setup = arguments.setup(&on_real);
    Ok(quote! {
        ::kubewright_cluster::__real!();
        // Lints recognise test code by this attribute.
        #[cfg(test)]
        #function
        #(#attributes)*
        #[::core::prelude::v1::test]
        #visibility fn #name() #output {
            #setup.run(#body)
        }
        #(#attributes)*
        #[::core::prelude::v1::test]
        #visibility fn #on_real() #output {
            #real_setup.run_on_real_control_plane(#body)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(arguments: TokenStream, item: TokenStream) -> String {
        let tokens = expand(arguments, item).expect("it is accepted");
        tokens.to_string().split_whitespace().collect()
    }

    fn refused(arguments: TokenStream, item: TokenStream) -> String {
        expand(arguments, item).expect_err("it is refused").to_string()
    }

    fn good() -> TokenStream {
        quote!(
            async fn works(cluster: Cluster) -> Result<(), Boxed> {
                Ok(())
            }
        )
    }

    #[test]
    fn a_test_keeps_its_name_its_attributes_and_its_result() {
        let text = expanded(
            quote!(),
            quote!(
                #[ignore = "slow"]
                pub(crate) async fn works(mut c: Cluster) -> Outcome {
                    Ok(())
                }
            ),
        );
        assert!(
            text.starts_with("#[ignore=\"slow\"]#[::core::prelude::v1::test]pub(crate)fnworks()->Outcome{"),
            "{text}"
        );
        assert!(text.contains("asyncfnworks(mutc:Cluster)->Outcome{Ok(())}"), "{text}");
        assert!(text.ends_with("\"::\",\"works\")).run(works)}"), "{text}");
    }

    #[test]
    fn arguments_configure_the_cluster() {
        let text = expanded(quote!(nodes = 0, controllers = none, start = "2026-03-29T00:30:00Z",), good());
        let setup = ".controllers(::kubewright_cluster::Controllers::None).nodes(0).starting_at(\"2026-03-29T00:30:00Z\")";
        assert!(text.contains(setup), "{text}");
        assert!(!expanded(quote!(controllers = all), good()).contains("Controllers"), "all is the default");
    }

    #[test]
    fn real_makes_two_tests_of_one_body() {
        let text = expanded(quote!(real, nodes = 1), good());
        assert_eq!(text.matches("::core::prelude::v1::test").count(), 2, "{text}");
        assert_eq!(text.matches("Ok(())").count(), 1, "the body is expanded once: {text}");
        assert!(text.contains("fnworks_on_a_real_control_plane()"), "{text}");
        assert!(text.contains("run_on_real_control_plane(__works)"), "{text}");
        assert_eq!(text.matches(".nodes(1)").count(), 2, "{text}");
    }

    #[test]
    fn invalid_signatures_are_refused_with_the_expected_one() {
        let shape = "write `async fn name(cluster: Cluster)`";
        for (item, why) in [
            (
                quote!(
                    fn works(cluster: Cluster) {}
                ),
                "is `async`",
            ),
            (
                quote!(
                    async fn works() {}
                ),
                "does not take its cluster",
            ),
            (
                quote!(
                    async fn works(a: Cluster, b: Cluster) {}
                ),
                "nothing else",
            ),
            (
                quote!(
                    async fn works<T>(a: T) {}
                ),
                "no generic parameters",
            ),
            (
                quote!(
                    async fn works(&self) {}
                ),
                "no `self`",
            ),
        ] {
            let error = refused(quote!(), item);
            assert!(error.contains(why) && error.contains(shape), "{error}");
        }
        assert!(
            refused(
                quote!(),
                quote!(
                    struct Test;
                )
            )
            .starts_with("only a function can be a test")
        );
    }

    #[test]
    fn invalid_arguments_are_refused_with_the_valid_ones() {
        for (arguments, why) in [
            (quote!(node = 1), "use `nodes`, `controllers`, `start` or `real`"),
            (quote!(nodes), "`nodes` needs a value"),
            (quote!(nodes = "three"), "`nodes` is a number"),
            (quote!(nodes = 5_000_000_000), "number too large"),
            (quote!(nodes = 1, nodes = 2), "given twice"),
            (quote!(controllers = some), "`all` or `none`"),
            (quote!(start = 2026), "`start` is a time"),
            (quote!(real, controllers = none), "its own controllers"),
            (quote!(real, start = "2026-01-01T00:00:00Z"), "its own time"),
        ] {
            let error = refused(arguments, good());
            assert!(error.contains(why), "{error}");
        }
    }
}
