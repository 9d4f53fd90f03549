//! Making a component of a projection.

/// Makes this crate a component that runs the given [`Projection`](crate::Projection). Used once, at the top of a
/// crate of type `cdylib`; for other targets than WebAssembly it only checks the type.
#[macro_export]
macro_rules! export {
    ($projection:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::__private::bindings::exports::projector::projection::manifest;
            use $crate::__private::{Guest, boundary};

            ::std::thread_local! {
                static GUEST: Guest<$projection> = const { Guest::new() };
            }

            struct Component;

            impl manifest::Guest for Component {
                fn describe(
                    config: ::std::string::String,
                ) -> ::core::result::Result<manifest::Description, ::std::string::String> {
                    // What the host wrote is never freed: it was given room without gaps.
                    let config = config.leak();
                    GUEST.with(|guest| guest.describe(config))
                }
            }

            #[unsafe(export_name = "projector:projection/manifest@0.1.0#describe")]
            unsafe extern "C" fn describe(config: *mut u8, length: usize) -> *mut u8 {
                // SAFETY: called by the host, as the contract says.
                unsafe { manifest::_export_describe_cabi::<Component>(config, length) }
            }

            #[unsafe(export_name = "cabi_post_projector:projection/manifest@0.1.0#describe")]
            unsafe extern "C" fn described(description: *mut u8) {
                // SAFETY: called by the host with what `describe` returned.
                unsafe { manifest::__post_return_describe::<Component>(description) }
            }

            #[unsafe(export_name = "projector:projection/projector@0.1.0#project")]
            unsafe extern "C" fn project(
                events: *const $crate::Event,
                count: usize,
            ) -> *const boundary::Projected {
                let run = |events| GUEST.with(|guest| guest.project(events));
                // SAFETY: called by the host, as the contract says.
                unsafe { boundary::project(events, count, run) }
            }
        };

        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() = || {
            fn is_projection<P: $crate::Projection>() {}
            is_projection::<$projection>();
        };
    };
}
