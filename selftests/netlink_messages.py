#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Messages to the family rdma_isolate that the tool would never send.

usage: netlink_messages.py DEV

Every refusal must have an errno and a text. Run by netlink_messages.sh, which
sets up the device.
"""

import errno
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time

NETLINK_GENERIC = 16
SOL_NETLINK = 270
NETLINK_ADD_MEMBERSHIP = 1
NETLINK_CAP_ACK = 10
NETLINK_EXT_ACK = 11

NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_DUMP = 0x300
NLM_F_ACK_TLVS = 0x200
NLMSGERR_ATTR_MSG = 1

GENL_ID_CTRL = 16
CTRL_CMD_GETFAMILY = 3
CTRL_ATTR_FAMILY_ID = 1
CTRL_ATTR_FAMILY_NAME = 2
CTRL_ATTR_MCAST_GROUPS = 7
CTRL_ATTR_MCAST_GRP_ID = 2

(DEV_GET, DEV_SET, DEV_NTF, FLOW_GET,
 RULE_ADD, RULE_DEL, RULE_GET, STAT_GET, FLOW_NTF, FLOW_DEL_NTF,
 GROUP_GET, BUDGET_GET, BUDGET_SET, BUDGET_NTF, HIST_GET, FLOW_ERROR_NTF, GROUP_FAULT_NTF,
 CTRL_NTF, FLOW_MARK) = range(1, 20)
(DEV_DEV, DEV_INDEX, DEV_STATE, DEV_MODE, DEV_MAX_RATE, DEV_MAX_OPS,
 DEV_SAFE_UTIL, DEV_CHUNK_BYTES, DEV_TOKEN_BYTES, DEV_TOKEN_OPS,
 DEV_INFLIGHT_BYTES) = range(2, 13)
FLOW_DEV, FLOW_QPN = 2, 3
FLOW_GROUP = 24
(RULE_ID, RULE_DEV, RULE_ULP, RULE_PEER, RULE_COMM, RULE_UID, RULE_CLASS,
 RULE_WEIGHT, _, RULE_CGROUP) = range(2, 12)
STAT_DEV = 2
GROUP_DEV, GROUP_ID = 2, 3
BUDGET_DEV, BUDGET_SAFE_UTIL, BUDGET_CHUNK_BYTES, _, BUDGET_LEASE = range(2, 7)
DEV_HISTOGRAM = 18
RATE_AUTO = 0
HIST_DEV, HIST_CLASS = 2, 3

# of a user without CAP_NET_ADMIN; 6.1 has no text for a dump that does not begin
REQUESTS_AT_ONCE = 200
REQUESTS_PER_S = 100
# a dump of more counts for one more
REQUEST_GROUPS = 128
TRACING = '/sys/kernel/tracing/'
NO_TEXT_FOR_DUMPS = os.uname().release.startswith('6.1.')


def attr(kind, payload):
    data = struct.pack('=HH', 4 + len(payload), kind) + payload
    return data + b'\0' * (-len(data) % 4)


def u32(kind, val):
    return attr(kind, struct.pack('=I', val))


def u64(kind, val):
    return attr(kind, struct.pack('=Q', val))


def text(kind, val):
    return attr(kind, val.encode() + b'\0')


def attrs_of(data):
    found = {}
    while len(data) >= 4:
        size, kind = struct.unpack_from('=HH', data)
        if size < 4:
            break
        found[kind & 0x3fff] = data[4:size]
        data = data[(size + 3) & ~3:]
    return found


class Answer:
    """What came back: the errno, its text, and the messages before it"""

    def __init__(self):
        self.errno = 0
        self.text = ''
        self.messages = []

    def __str__(self):
        name = errno.errorcode.get(self.errno, str(self.errno))
        return f'{name} "{self.text}"'


class Netlink:
    def __init__(self):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                  NETLINK_GENERIC)
        self.sock.bind((0, 0))
        self.sock.settimeout(20)
        for option in NETLINK_CAP_ACK, NETLINK_EXT_ACK:
            self.sock.setsockopt(SOL_NETLINK, option, 1)
        self.seq = 0
        self.family = GENL_ID_CTRL
        answer = self.ask(CTRL_CMD_GETFAMILY,
                          text(CTRL_ATTR_FAMILY_NAME, 'rdma_isolate'))
        found = attrs_of(answer.messages[0])
        self.family = struct.unpack('=H', found[CTRL_ATTR_FAMILY_ID])[0]
        group = next(iter(attrs_of(found[CTRL_ATTR_MCAST_GROUPS]).values()))
        self.events = struct.unpack(
            '=I', attrs_of(group)[CTRL_ATTR_MCAST_GRP_ID])[0]

    def ask(self, cmd, payload=b'', dump=False):
        self.seq += 1
        flags = NLM_F_REQUEST | (NLM_F_DUMP if dump else NLM_F_ACK)
        body = struct.pack('=BBH', cmd, 1, 0) + payload
        self.sock.send(struct.pack('=IHHII', 16 + len(body), self.family,
                                   flags, self.seq, 0) + body)
        answer = Answer()
        while not self.read(answer):
            pass
        return answer

    def read(self, answer):
        data = self.sock.recv(65536)
        while len(data) >= 16:
            size, kind, flags, seq, _ = struct.unpack_from('=IHHII', data)
            body = data[16:size]
            data = data[(size + 3) & ~3:]
            if seq != self.seq:
                continue
            if kind not in (NLMSG_ERROR, NLMSG_DONE):
                answer.messages.append(body[4:])
                continue
            if len(body) >= 4:
                answer.errno = -struct.unpack_from('=i', body)[0]
            if flags & NLM_F_ACK_TLVS:
                skip = 20 if kind == NLMSG_ERROR else 4
                found = attrs_of(body[skip:]).get(NLMSGERR_ATTR_MSG, b'')
                answer.text = found.rstrip(b'\0').decode()
            return True
        return False


class Ktap:
    def __init__(self, plan):
        self.count = 0
        self.failed = 0
        print(f'TAP version 13\n1..{plan}')

    def result(self, good, what, note=''):
        self.count += 1
        self.failed += not good
        if not good:
            print(f'# {note}')
        print('ok' if good else 'not ok', self.count, what, flush=True)


def refusals(dev):
    """what is wrong, errno, a part of the text, command, attributes, dump"""
    name = text(DEV_DEV, dev)
    rule = text(RULE_ULP, 'x') + u32(RULE_CLASS, 0)
    nobody = 'no RDMA device of this name'
    return [
        ('an unknown attribute', errno.EINVAL, 'nknown attribute',
         DEV_GET, name + u32(200, 1), False),
        ('an unknown attribute of a dump', errno.EINVAL, '',
         DEV_GET, u32(200, 1), True),
        ('an attribute of another operation', errno.EINVAL, 'nknown attribute',
         DEV_GET, name + u32(DEV_INDEX, 1), False),
        ('an attribute that is shown only', errno.EINVAL, 'nsupported',
         DEV_SET, name + u32(DEV_INDEX, 1), False),
        ('padding', errno.EINVAL, 'nsupported',
         DEV_SET, name + attr(1, b''), False),
        ('a u32 instead of a u64', errno.EINVAL, 'length',
         DEV_SET, name + u32(DEV_MAX_RATE, 1), False),
        ('a u64 instead of a u32', errno.EINVAL, 'length',
         DEV_SET, name + u64(DEV_MODE, 1), False),
        ('an empty u32', errno.EINVAL, 'length',
         DEV_SET, name + attr(DEV_MODE, b''), False),
        ('a name without an end', errno.EINVAL, '',
         DEV_GET, attr(DEV_DEV, b'rxe0'), False),
        ('a name that is too long', errno.EINVAL, 'policy',
         DEV_GET, text(DEV_DEV, 'x' * 64), False),
        ('an empty name', errno.ENODEV, nobody,
         DEV_GET, text(DEV_DEV, ''), False),
        ('no name', errno.EINVAL, 'name of the device is missing',
         DEV_GET, b'', False),
        ('an unknown device', errno.ENODEV, nobody,
         DEV_GET, text(DEV_DEV, 'nosuch'), False),
        ('settings of an unknown device', errno.ENODEV, nobody, DEV_SET,
         text(DEV_DEV, 'nosuch') + u32(DEV_MODE, 0), False),
        ('flows of an unknown device', errno.ENODEV, nobody,
         FLOW_GET, text(FLOW_DEV, 'nosuch'), True),
        ('a flow of an unknown device', errno.ENODEV, nobody,
         FLOW_GET, text(FLOW_DEV, 'nosuch') + u32(FLOW_QPN, 1), False),
        ('counters of an unknown device', errno.ENODEV, nobody,
         STAT_GET, text(STAT_DEV, 'nosuch'), False),
        ('an unknown queue pair', errno.ENOENT, 'no queue pair',
         FLOW_GET, text(FLOW_DEV, dev) + u32(FLOW_QPN, 0xfffffff), False),
        ('a flow without a number', errno.EINVAL, 'number is missing',
         FLOW_GET, text(FLOW_DEV, dev), False),
        ('a mark without a number', errno.EINVAL, 'number is missing',
         FLOW_MARK, text(FLOW_DEV, dev) + u32(FLOW_GROUP, 1), False),
        ('a mark without a group', errno.EINVAL, 'id of the group is missing',
         FLOW_MARK, text(FLOW_DEV, dev) + u32(FLOW_QPN, 1), False),
        ('a mark without a device', errno.EINVAL, 'name of the device is missing',
         FLOW_MARK, u32(FLOW_QPN, 1) + u32(FLOW_GROUP, 1), False),
        ('a mark on an unknown device', errno.ENODEV, nobody,
         FLOW_MARK, text(FLOW_DEV, 'nosuch') + u32(FLOW_QPN, 1) + u32(FLOW_GROUP, 1), False),
        ('a mark on an unknown queue pair', errno.ENOENT, 'no queue pair of this number in',
         FLOW_MARK, text(FLOW_DEV, dev) + u32(FLOW_QPN, 0xfffffff) + u32(FLOW_GROUP, 1),
         False),
        ('a mark in another group', errno.ENOENT, 'no queue pair of this number in',
         FLOW_MARK, text(FLOW_DEV, dev) + u32(FLOW_QPN, 1) + u32(FLOW_GROUP, 0xfffffff),
         False),
        ('a dump of one flow', errno.EINVAL, 'the device only',
         FLOW_GET, text(FLOW_DEV, dev) + u32(FLOW_QPN, 1), True),
        ('a dump of one device', errno.EINVAL, 'takes no attributes',
         DEV_GET, name, True),
        ('a dump of one rule', errno.EINVAL, 'takes no attributes',
         RULE_GET, u32(RULE_ID, 1), True),
        ('a dump of counters of one device', errno.EINVAL,
         'takes no attributes', STAT_GET, text(STAT_DEV, dev), True),
        ('nothing to set', errno.EINVAL, 'nothing to change',
         DEV_SET, name, False),
        ('a mode out of range', errno.ERANGE, 'range',
         DEV_SET, name + u32(DEV_MODE, 3), False),
        ('a max-rate of 1', errno.ERANGE, '100000 to',
         DEV_SET, name + u64(DEV_MAX_RATE, 1), False),
        ('a max-rate below the least', errno.ERANGE, '100000 to',
         DEV_SET, name + u64(DEV_MAX_RATE, 99999), False),
        ('a max-rate above the most', errno.ERANGE, '100000 to',
         DEV_SET, name + u64(DEV_MAX_RATE, 1000000000001), False),
        ('a safe-util above what the port tells', errno.ERANGE, 'the port tells',
         DEV_SET, name + u64(DEV_MAX_RATE, RATE_AUTO) + u64(DEV_SAFE_UTIL, 1000000000000),
         False),
        ('a safe-util of 1', errno.ERANGE, '100000 to',
         DEV_SET, name + u64(DEV_SAFE_UTIL, 1), False),
        ('a safe-util below the least', errno.ERANGE, '100000 to',
         DEV_SET, name + u64(DEV_SAFE_UTIL, 99999), False),
        ('chunk-bytes below the least', errno.ERANGE, '1024 to 1048576',
         DEV_SET, name + u32(DEV_CHUNK_BYTES, 1023), False),
        ('chunk-bytes above the most', errno.ERANGE, '1024 to 1048576',
         DEV_SET, name + u32(DEV_CHUNK_BYTES, 1048577), False),
        ('a turn of less than 1024 bytes', errno.ERANGE, 'at least 1024',
         DEV_SET, name + u32(DEV_TOKEN_BYTES, 1023), False),
        ('a turn of no message', errno.ERANGE, 'at least 1 message',
         DEV_SET, name + u32(DEV_TOKEN_OPS, 0), False),
        ('inflight-bytes of 1', errno.ERANGE, 'at least 1024',
         DEV_SET, name + u32(DEV_INFLIGHT_BYTES, 1), False),
        ('a class out of range', errno.ERANGE, 'range',
         RULE_ADD, text(RULE_ULP, 'x') + u32(RULE_CLASS, 3), False),
        ('a weight of 0', errno.ERANGE, 'range',
         RULE_ADD, rule + u32(RULE_WEIGHT, 0), False),
        ('a weight of 10001', errno.ERANGE, 'range',
         RULE_ADD, rule + u32(RULE_WEIGHT, 10001), False),
        ('a rule that matches nothing', errno.EINVAL, 'needs one of',
         RULE_ADD, u32(RULE_CLASS, 0), False),
        ('a rule without a class', errno.EINVAL, 'class is missing',
         RULE_ADD, text(RULE_ULP, 'x'), False),
        ('a rule with an empty ulp', errno.EINVAL, 'empty',
         RULE_ADD, text(RULE_ULP, '') + u32(RULE_CLASS, 0), False),
        ('a rule with an id', errno.EINVAL, 'nsupported',
         RULE_ADD, rule + u32(RULE_ID, 7), False),
        ('a peer that is no address', errno.EINVAL, 'no IPv4 address',
         RULE_ADD, text(RULE_PEER, '10.0.0.256') + u32(RULE_CLASS, 0), False),
        ('a peer with more behind it', errno.EINVAL, 'no IPv4 address',
         RULE_ADD, text(RULE_PEER, '10.0.0.1/8') + u32(RULE_CLASS, 0), False),
        ('a comm that is too long', errno.EINVAL, 'policy',
         RULE_ADD, text(RULE_COMM, 'x' * 16) + u32(RULE_CLASS, 0), False),
        ('a cgroup that is no path', errno.EINVAL, '/ first',
         RULE_ADD, text(RULE_CGROUP, 'a/b') + u32(RULE_CLASS, 0), False),
        ('a cgroup with / last', errno.EINVAL, 'not last',
         RULE_ADD, text(RULE_CGROUP, '/a/') + u32(RULE_CLASS, 0), False),
        ('an empty cgroup', errno.EINVAL, 'empty',
         RULE_ADD, text(RULE_CGROUP, '') + u32(RULE_CLASS, 0), False),
        ('a cgroup that is too long', errno.EINVAL, 'policy',
         RULE_ADD, text(RULE_CGROUP, '/' + 'x' * 255) + u32(RULE_CLASS, 0), False),
        ('an unknown rule', errno.ENOENT, 'rule',
         RULE_DEL, u32(RULE_ID, 0xffffffff), False),
        ('showing an unknown rule', errno.ENOENT, 'no rule has this id',
         RULE_GET, u32(RULE_ID, 0xffffffff), False),
        ('rule 0', errno.ERANGE, 'range', RULE_DEL, u32(RULE_ID, 0), False),
        ('no rule', errno.EINVAL, 'id of the rule is missing',
         RULE_DEL, b'', False),
        ('a group of an unknown device', errno.ENODEV, nobody,
         GROUP_GET, text(GROUP_DEV, 'nosuch') + u32(GROUP_ID, 1), False),
        ('an unknown group', errno.ENOENT, 'no group has this id',
         GROUP_GET, text(GROUP_DEV, dev) + u32(GROUP_ID, 0xfffffff), False),
        ('a group without an id', errno.EINVAL, 'id of the group is missing',
         GROUP_GET, text(GROUP_DEV, dev), False),
        ('group 0', errno.ERANGE, 'range',
         GROUP_GET, text(GROUP_DEV, dev) + u32(GROUP_ID, 0), False),
        ('a dump of one group', errno.EINVAL, 'the device only',
         GROUP_GET, text(GROUP_DEV, dev) + u32(GROUP_ID, 1), True),
        ('a budget of an unknown device', errno.ENODEV, nobody,
         BUDGET_GET, text(BUDGET_DEV, 'nosuch'), False),
        ('a dump of one budget', errno.EINVAL, 'takes no attributes',
         BUDGET_GET, text(BUDGET_DEV, dev), True),
        ('a budget without a lease', errno.EINVAL, 'lease is missing',
         BUDGET_SET, text(BUDGET_DEV, dev) + u32(BUDGET_CHUNK_BYTES, 4096), False),
        ('a lease of 0', errno.ERANGE, '1 ms to 1 hour', BUDGET_SET,
         text(BUDGET_DEV, dev) + u64(BUDGET_LEASE, 0), False),
        ('a lease without end', errno.ERANGE, '1 ms to 1 hour', BUDGET_SET,
         text(BUDGET_DEV, dev) + u64(BUDGET_LEASE, 2 ** 64 - 1), False),
        ('a histogram that is neither on nor off', errno.ERANGE, 'range',
         DEV_SET, name + u32(DEV_HISTOGRAM, 2), False),
        ('a histogram without a class', errno.EINVAL, 'class is missing',
         HIST_GET, text(HIST_DEV, dev), False),
        ('a histogram of a class out of range', errno.ERANGE, 'range',
         HIST_GET, text(HIST_DEV, dev) + u32(HIST_CLASS, 3), False),
        ('a histogram of no device', errno.EINVAL, 'device is missing',
         HIST_GET, u32(HIST_CLASS, 0), False),
        ('a histogram of an unknown device', errno.ENODEV, nobody,
         HIST_GET, text(HIST_DEV, 'nosuch') + u32(HIST_CLASS, 0), False),
        ('histograms of an unknown device', errno.ENODEV, nobody,
         HIST_GET, text(HIST_DEV, 'nosuch'), True),
        ('a dump of the histograms of a class', errno.EINVAL,
         'the device only', HIST_GET, u32(HIST_CLASS, 0), True),
        ('an attribute that ends behind the message', errno.EINVAL, '',
         DEV_GET, struct.pack('=HH', 64, DEV_DEV) + b'rxe0', False),
        ('a message that goes on behind its attributes', errno.EINVAL, '',
         DEV_GET, name + b'\1\0', False),
    ]


def check_refusal(ktap, netlink, case):
    what, want_errno, part, cmd, payload, dump = case
    answer = netlink.ask(cmd, payload, dump)
    ktap.result(answer.errno == want_errno and answer.text != '' and
                part in answer.text, f'{what} is refused', str(answer))


def as_nobody(dev):
    """The answers to each setter"""
    netlink = Netlink()
    for cmd, payload in (
            (DEV_SET, text(DEV_DEV, dev) + u32(DEV_MODE, 0)),
            (RULE_ADD, text(RULE_ULP, 'x') + u32(RULE_CLASS, 0)),
            (RULE_DEL, u32(RULE_ID, 1)),
            (BUDGET_SET, text(BUDGET_DEV, dev) + u64(BUDGET_LEASE, 10 ** 9)),
            (FLOW_MARK, text(FLOW_DEV, dev) + u32(FLOW_QPN, 1) + u32(FLOW_GROUP, 1))):
        answer = netlink.ask(cmd, payload)
        if answer.errno != errno.EPERM or 'CAP_NET_ADMIN' not in answer.text:
            print(f'# command {cmd}: {answer}', flush=True)
            return 1
    return 0 if netlink.ask(DEV_GET, dump=True).errno == 0 else 1


def count_requests(netlink, dev, number):
    """How many of these a user may make, and how many the rate allows; half are dumps"""
    begin = time.monotonic()
    good = 0
    for i in range(number):
        answer = netlink.ask(DEV_GET, b'' if i % 2 else text(DEV_DEV, dev), dump=i % 2)
        if answer.errno == 0:
            good += 1
        elif answer.errno != errno.EBUSY or \
                not (i % 2 and NO_TEXT_FOR_DUMPS or 'CAP_NET_ADMIN' in answer.text):
            print(f'# {answer}', flush=True)
            return -1, 0
    return good, REQUESTS_AT_ONCE + 2 + (time.monotonic() - begin) * REQUESTS_PER_S


def ask_as_nobody(dev):
    """More requests than a user may make"""
    good, most = count_requests(Netlink(), dev, 1000)
    if REQUESTS_AT_ONCE <= good <= most:
        return 0
    print(f'# {good} requests, at most {most:.0f}', flush=True)
    return 1


class Calls:
    """Counts how often a function of the module is called"""

    def __init__(self, function):
        self._write('kprobe_events', f'p:riso/calls {function}')
        self._write('events/riso/calls/enable', '1')
        self._profile = open(TRACING + 'kprobe_profile', encoding='ascii')

    @staticmethod
    def _write(name, value):
        with open(TRACING + name, 'w', encoding='ascii') as file:
            file.write(value)

    def count(self):
        self._profile.seek(0)
        return int(self._profile.read().split()[1])

    def end(self):
        self._profile.close()
        self._write('events/riso/calls/enable', '0')
        self._write('kprobe_events', '')


def dump_groups(rates):
    """One dump of many groups, when nothing else counts any more"""
    netlink = Netlink()
    before, now = -1, rates.count()
    while now != before:
        time.sleep(0.5)
        before, now = now, rates.count()
    answer = netlink.ask(GROUP_GET, dump=True)
    taken = rates.count() - now
    if answer.errno == 0 and taken == 1 + len(answer.messages) // REQUEST_GROUPS > 1:
        return 0
    print(f'# {len(answer.messages)} groups, {taken} requests', flush=True)
    return 1


def check_groups(ktap, dev):
    """Each process with a queue pair is a group"""
    program = os.path.join(os.path.dirname(__file__), 'many_qps')
    programs = [subprocess.Popen([program, dev, '1'], stdout=subprocess.PIPE)
                for _ in range(REQUEST_GROUPS + 10)]
    for process in programs:
        while process.stdout.readline() not in (b'ready\n', b''):
            pass
    rates = Calls('riso_rate_take')
    check_nobody(ktap, rates, dump_groups, 'a dump of many groups counts for more requests')
    rates.end()
    for process in programs:
        process.kill()
        process.wait()


def check_nobody(ktap, arg, ask, what):
    """In a child without capabilities"""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        os._exit(ask(arg))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ktap.result(status == 0, what, f'status {status}')


def check_admin_requests(ktap, netlink, dev):
    good, _ = count_requests(netlink, dev, 3 * REQUESTS_AT_ONCE)
    ktap.result(good == 3 * REQUESTS_AT_ONCE, 'an administrator may ask more often',
                f'{good} requests')


def check_event(ktap, netlink, dev):
    """A change of state is told to those who listen"""
    listener = Netlink()
    listener.sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
                             listener.events)
    states = []
    for mode in 1, 0:
        netlink.ask(DEV_SET, text(DEV_DEV, dev) + u32(DEV_MODE, mode))
    deadline = time.monotonic() + 20
    while states[-1:] != [0] and time.monotonic() < deadline:
        if not select.select([listener.sock], [], [], 1)[0]:
            continue
        data = listener.sock.recv(65536)
        found = attrs_of(data[20:])
        if data[16] == DEV_NTF and \
                found.get(DEV_DEV) == dev.encode() + b'\0':
            states.append(struct.unpack('=I', found[DEV_STATE])[0])
    ktap.result(states[:1] == [1] and states[-1:] == [0],
                'changes of state are told', f'states {states}')


def check_rules(ktap, netlink):
    """More rules than one message holds come back, each once and in order"""
    ids = []
    for uid in range(150):
        answer = netlink.ask(RULE_ADD, text(RULE_ULP, 'x' * 31) +
                             text(RULE_COMM, 'y' * 15) + u32(RULE_UID, uid) +
                             text(RULE_CGROUP, '/' + 'z' * 254) +
                             u32(RULE_CLASS, 2))
        if answer.errno:
            break
        ids.append(attrs_of(answer.messages[0])[RULE_ID])
    dumped = [attrs_of(message)[RULE_ID]
              for message in netlink.ask(RULE_GET, dump=True).messages]
    left = [netlink.ask(RULE_DEL, attr(RULE_ID, id)).errno for id in ids]
    ktap.result(len(ids) == 150 and dumped == ids and not any(left),
                'a dump of 150 rules', f'{len(ids)} added, {len(dumped)} shown')


def check_noise(ktap, netlink):
    """Anything at all is answered, and harms nobody"""
    rand = random.Random(2)
    done = 0
    for _ in range(2000):
        payload = b''
        for _ in range(rand.randrange(5)):
            kind = rand.choice((rand.randrange(20), rand.randrange(65536)))
            payload += attr(kind, rand.randbytes(rand.randrange(12)))
        if rand.random() < 0.1:
            payload = rand.randbytes(rand.randrange(64))
        # a rule might be added by chance, setters need a device's name
        cmd = rand.choice((DEV_GET, DEV_SET, FLOW_GET, RULE_DEL, RULE_GET,
                           STAT_GET, DEV_NTF, GROUP_GET, BUDGET_GET,
                           BUDGET_SET, HIST_GET, FLOW_MARK, 0, 99))
        netlink.ask(cmd, payload, rand.random() < 0.3)
        done += 1
    ktap.result(done == 2000 and netlink.ask(DEV_GET, dump=True).errno == 0,
                'noise is answered', f'{done} answers')


def main():
    dev = sys.argv[1]
    cases = refusals(dev)
    ktap = Ktap(len(cases) + 7)
    netlink = Netlink()
    for case in cases:
        check_refusal(ktap, netlink, case)
    check_nobody(ktap, dev, as_nobody, 'nobody may look and not touch')
    check_nobody(ktap, dev, ask_as_nobody, 'nobody may ask so often and no more')
    check_groups(ktap, dev)
    check_admin_requests(ktap, netlink, dev)
    check_event(ktap, netlink, dev)
    check_rules(ktap, netlink)
    check_noise(ktap, netlink)
    print(f'# Totals: pass:{ktap.count - ktap.failed} fail:{ktap.failed} '
          'xfail:0 xpass:0 skip:0 error:0')
    return 1 if ktap.failed else 0


if __name__ == '__main__':
    sys.exit(main())
