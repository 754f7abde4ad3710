//! The guest's network, with Linux at one end and this test's sockets at the other.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::common::{guest, json, scratch, stderr, stdout, tipsim};

/// `tipsim run` with a network, of a command in the functional mode.
fn run(dir: &Path, command: &str, extra: &str) -> (Command, PathBuf) {
    let (spec, out) = (dir.join("spec.toml"), dir.join("out"));
    let text = format!(
        "[run]\nboot = \"functional\"\ncommand = '''{command}'''\n[guest]\nnet = \"user\"\n{extra}"
    );
    std::fs::write(&spec, text).unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--out").arg(&out);
    run.arg("--guest-dir").arg(guest());
    (run, out)
}

#[track_caller]
fn finished(mut command: Command) {
    let output = command.output().unwrap();
    let text = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{text}");
}

fn read(out: &Path, name: &str) -> String {
    std::fs::read_to_string(out.join("files").join(name)).unwrap()
}

/// Bytes that differ wherever they are cut.
fn noise(length: u32) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// A server on a UDP port that says that every name is 192.0.2.99 (RFC 1035).
fn name_server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let mut message = bytes[..length].to_vec();
            message[2..4].copy_from_slice(&[0x81, 0x80]);
            // The question ends with its type and class; only an IPv4 address (1) is known.
            if message[length - 3] == 1 {
                message[7] = 1;
                message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 99]);
            }
            let _ = socket.send_to(&message, from);
        }
    });
    port
}

#[test]
fn the_guest_reaches_servers_of_the_host() {
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let web_port = web.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut stream = web.accept().unwrap().0;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while !lines.next().unwrap().unwrap().is_empty() {}
        let body = noise(3_000_000);
        write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        stream.write_all(&body).unwrap();
    });
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let sink_port = sink.local_addr().unwrap().port();
    let upload = thread::spawn(move || {
        let mut bytes = Vec::new();
        sink.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let dns_port = name_server();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_port = closed.local_addr().unwrap().port();
    drop(closed);

    let command = format!(
        "ip -4 addr show eth0 > addr; ip route > route; cat /etc/resolv.conf > resolv
        ping -c 3 10.0.2.2 > ping; echo $? >> ping
        wget -q -O body http://10.0.2.2:{web_port}/ || echo failed > wget
        nc 10.0.2.2 {sink_port} < body
        nslookup tipsim.test 10.0.2.2:{dns_port} > dns
        nc 10.0.2.2 {closed_port} < /dev/null 2> refused; echo $? >> refused"
    );
    let (run, out) = run(&scratch("network-client"), &command, "");
    finished(run);
    assert!(read(&out, "addr").contains("inet 10.0.2.15/24"));
    assert!(read(&out, "route").contains("default via 10.0.2.2"));
    assert!(read(&out, "resolv").contains("nameserver 10.0.2.3"));
    assert!(read(&out, "ping").ends_with("\n0\n"));
    assert!(std::fs::read(out.join("files/body")).unwrap() == noise(3_000_000));
    assert!(upload.join().unwrap() == noise(3_000_000));
    assert!(read(&out, "dns").contains("192.0.2.99"));
    assert!(read(&out, "refused").contains("refused"));
    assert_eq!(json(&out.join("run.json"))["deterministic"], false);
}

#[test]
fn the_host_reaches_a_server_of_the_guest() {
    // Powered off at once, the guest would take what it has not sent yet with it.
    let command = "nc -l -p 7 > question < /etc/passwd; sleep 0.2";
    let (mut run, out) = run(&scratch("network-server"), command, "hostfwd = [\"0:7\"]\n");
    let mut child = run.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let port = lines
        .find_map(|line| {
            let line = line.ok()?;
            let rest = line.strip_prefix("tipsim: localhost:")?;
            rest.split(' ').next()?.parse::<u16>().ok()
        })
        .expect("tipsim names the port");
    thread::spawn(move || lines.for_each(drop));
    // Until the guest listens it refuses.
    let answer = loop {
        if let Some(status) = child.try_wait().unwrap() {
            panic!("the guest ended without a question: {status}");
        }
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut answer = Vec::new();
        if stream.write_all(b"question").is_ok()
            && stream.shutdown(std::net::Shutdown::Write).is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && !answer.is_empty()
        {
            break answer;
        }
    };
    assert!(child.wait().unwrap().success());
    assert!(answer.starts_with(b"root:"));
    assert_eq!(read(&out, "question"), "question");
}
