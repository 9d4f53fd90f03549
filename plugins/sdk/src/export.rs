//! Making a component of a projection.

/// Makes this crate a component that runs the given [`Projection`](crate::Projection). Used once, at the top of a
/// crate of type `cdylib`; for other targets than WebAssembly it only checks the type.
#[macro_export]
macro_rules! export {
    ($projection:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::__private::{Guest, bindings};

            ::std::thread_local! {
                static GUEST: Guest<$projection> = const { Guest::new() };
            }

            struct Component;

            impl bindings::exports::projector::projection::manifest::Guest for Component {
                fn describe(
                    config: ::std::string::String,
                ) -> ::core::result::Result<
                    bindings::exports::projector::projection::manifest::Description,
                    ::std::string::String,
                > {
                    GUEST.with(|guest| guest.describe(config))
                }
            }

            impl bindings::exports::projector::projection::projector::Guest for Component {
                fn project(
                    batch: ::std::vec::Vec<$crate::Event>,
                ) -> ::core::result::Result<
                    ::std::vec::Vec<bindings::projector::projection::types::Write>,
                    bindings::projector::projection::types::Failure,
                > {
                    GUEST.with(|guest| guest.project(&batch))
                }
            }

    bindings::export_component!(Component with_types_in $crate::__private::bindings);
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = || {
            fn is_projection<P: $crate::Projection>() {}
            is_projection::<$projection>();
        };
    };
}
