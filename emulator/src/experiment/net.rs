//! The guest's network: the user-mode network behind the virtio card.

use user_net::{Config, Forward, UserNet};

use crate::failure::BadInput;
use crate::spec::Net;

/// Tells the guest's kernel, if it can, to configure its card by itself.
const BOOT_ARGUMENT: &str = "ip=dhcp ";

/// Builds the network that a command line or a spec asks for.
pub(crate) fn of(net: Net, hostfwd: &[Forward]) -> Result<Option<UserNet>, BadInput> {
    match net {
        Net::None if hostfwd.is_empty() => Ok(None),
        Net::None => Err(BadInput("--hostfwd: expected --net user with it".into())),
        Net::User => {
            let net = UserNet::new(Config::of_host(hostfwd.to_vec()))
                .map_err(|e| BadInput(format!("hostfwd: {e}")))?;
            for Forward { host, guest } in net.forwards() {
                eprintln!("tipsim: localhost:{host} leads to the guest's port {guest}");
            }
            Ok(Some(net))
        }
    }
}

/// Returns the kernel arguments that a guest with this network needs.
pub(crate) fn boot_argument(net: Net) -> &'static str {
    match net {
        Net::None => "",
        Net::User => BOOT_ARGUMENT,
    }
}
