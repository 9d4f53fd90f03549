//! Payloads of events that carry a tenant and an identifier.

/// Declares the payload of an event: its own fields, and beside them the tenant and the identifier, in either
/// shape. In brackets stands the identifier's field, and an older name of it where real stores hold one.
///
/// `identity()` says whom the event is about.
#[macro_export]
macro_rules! payload {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident [$id:ident $(| $old:ident)?] {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, ::serde::Deserialize)]
        $vis struct $name {
            merchant_id: ::core::option::Option<$crate::__private::Uuid>,
            tenant_schema: ::core::option::Option<::std::boxed::Box<$crate::__private::RawValue>>,
            $id: ::core::option::Option<$crate::__private::Uuid>,
            $($old: ::core::option::Option<::std::boxed::Box<$crate::__private::RawValue>>,)?
            $($(#[$field_meta])* $vis $field: $type,)*
        }

        impl $name {
            $vis fn identity(&self) -> ::core::result::Result<$crate::Identity, $crate::__private::Failure> {
                $crate::payload!(@identity self, $id $(, $old)?)
            }
        }
    };
    (@identity $self:ident, $id:ident) => {
        $crate::__private::identity(
            $self.merchant_id,
            $self.tenant_schema.as_deref(),
            (::core::stringify!($id), $self.$id),
        )
    };
    (@identity $self:ident, $id:ident, $old:ident) => {
        $crate::__private::identity_or_old(
            $self.merchant_id,
            $self.tenant_schema.as_deref(),
            (::core::stringify!($id), $self.$id),
            (::core::stringify!($old), $self.$old.as_deref()),
        )
    };
}

#[cfg(test)]
mod tests {
    use crate::Identity;
    use projector_sdk::Uuid;

    payload! {
        struct New [order_uuid] {}
    }
    payload! {
        struct Either [order_uuid | order_id] {}
    }

    const M: &str = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
    const N: &str = "11111111-2222-3333-4444-555555555555";
    const O: &str = "99999999-2222-3333-4444-555555555555";

    fn check(found: Result<Identity, String>, expected: Result<(&str, &str), &str>) {
        match (found, expected) {
            (Ok(found), Ok((merchant, uuid))) => {
                assert_eq!(Some(found.merchant), Uuid::parse(merchant));
                assert_eq!(Some(found.uuid), Uuid::parse(uuid));
            }
            (Err(message), Err(part)) => assert!(message.contains(part), "{message} lacks {part}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    }

    fn new(json: &str) -> Result<Identity, String> {
        let json = fill(json);
        let payload: New = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        payload.identity().map_err(|failure| failure.to_string())
    }

    fn either(json: &str) -> Result<Identity, String> {
        let json = fill(json);
        let payload: Either = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        payload.identity().map_err(|failure| failure.to_string())
    }

    /// `$M` and the like become UUIDs, `$m` one in upper case without dashes.
    fn fill(json: &str) -> String {
        json.replace("$m", &M.replace('-', "").to_uppercase())
            .replace("$M", M)
            .replace("$N", N)
            .replace("$O", O)
    }

    #[test]
    fn merchant_id_wins_over_tenant_schema() {
        check(new(r#"{"merchant_id":"$M","order_uuid":"$O"}"#), Ok((M, O)));
        check(
            new(r#"{"tenant_schema":"merchant_$m","order_uuid":"$O"}"#),
            Ok((M, O)),
        );
        check(
            new(r#"{"tenant_schema":"a_b_$m","order_uuid":"$O"}"#),
            Ok((M, O)),
        );
        check(
            new(r#"{"merchant_id":null,"tenant_schema":"m_$m","order_uuid":"$O"}"#),
            Ok((M, O)),
        );
        check(
            new(r#"{"merchant_id":"$N","tenant_schema":"m_$m","order_uuid":"$O"}"#),
            Ok((N, O)),
        );
        check(
            new(r#"{"merchant_id":"$N","tenant_schema":["?"],"order_uuid":"$O"}"#),
            Ok((N, O)),
        );
        check(
            new(r#"{"merchant_id":"?","tenant_schema":"m_$m","order_uuid":"$O"}"#),
            Err("UUID"),
        );
    }

    #[test]
    fn a_tenant_without_32_hex_digits_is_refused() {
        for tenant in [
            "",
            "merchant_",
            "merchant_1234",
            "m_0a1b2c3d4e5f6789abcdef012345678",
            "m_$M",
            "m_$m ",
            "é$m\u{e9}",
        ] {
            check(
                new(&format!(
                    r#"{{"tenant_schema":"{tenant}","order_uuid":"$O"}}"#
                )),
                Err("tenant_schema"),
            );
        }
        check(
            new(r#"{"tenant_schema":7,"order_uuid":"$O"}"#),
            Err("tenant_schema"),
        );
        check(new(r#"{"order_uuid":"$O"}"#), Err("merchant_id"));
    }

    #[test]
    fn the_older_identifier_counts_where_it_existed() {
        check(
            either(r#"{"merchant_id":"$M","order_id":"$O"}"#),
            Ok((M, O)),
        );
        check(
            either(r#"{"merchant_id":"$M","order_uuid":"$N","order_id":"$O"}"#),
            Ok((M, N)),
        );
        check(
            either(r#"{"merchant_id":"$M","order_uuid":"$N","order_id":7}"#),
            Ok((M, N)),
        );
        check(
            either(r#"{"merchant_id":"$M","order_id":7}"#),
            Err("order_id"),
        );
        check(
            either(r#"{"merchant_id":"$M","order_id":"x"}"#),
            Err("order_id"),
        );
        check(either(r#"{"merchant_id":"$M"}"#), Err("order_uuid"));
        check(
            new(r#"{"merchant_id":"$M","order_id":"$O"}"#),
            Err("order_uuid"),
        );
    }
}
