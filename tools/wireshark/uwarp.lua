-- SPDX-License-Identifier: BSD-3-Clause
-- What Wireshark 4.0 does not show of iWARP: the S bit, IRD/ORD and the RTR bits of enhanced MPA
-- start-up frames (RFC 6581 §9), Immediate Data (RFC 7306 §6, opcodes 0x8 and 0x9) and uwarp's
-- Send with Immediate (0xF).
--
--   tshark -X lua_script:tools/wireshark/uwarp.lua -r FILE.pcap -O uwarp
--   wireshark: put it into the personal Lua plugins folder
--
-- A postdissector: it reads the TCP payload beside the built-in dissectors. FPDUs are found when
-- one starts the segment, as uwarp and most peers send them.

local p = Proto("uwarp", "iWARP additions")
local f = {
	s = ProtoField.bool("uwarp.s", "Enhanced (S)"),
	a = ProtoField.bool("uwarp.a", "Peer-to-peer (A)"),
	rtr = ProtoField.string("uwarp.rtr", "RTR kinds"),
	ird = ProtoField.uint16("uwarp.ird", "IRD"),
	ord = ProtoField.uint16("uwarp.ord", "ORD"),
	op = ProtoField.string("uwarp.op", "RDMAP message"),
	imm = ProtoField.bytes("uwarp.imm", "Immediate data"),
	se = ProtoField.bool("uwarp.se", "Solicited event"),
}
p.fields = { f.s, f.a, f.rtr, f.ird, f.ord, f.op, f.imm, f.se }

local tcp_payload = Field.new("tcp.payload")
local mpa = Field.new("iwarp_mpa")

local KEY_LENGTH, START_LENGTH = 16, 20

local function start_frame(buf, tree)
	local bits, rev = buf(16, 1):uint(), buf(17, 1):uint()
	local pd = buf(18, 2):uint()
	local enhanced = rev >= 2 and bit.band(bits, 0x10) ~= 0
	local t = tree:add(p, buf())

	t:add(f.s, buf(16, 1), enhanced)
	if not enhanced or pd < 4 or buf:len() < START_LENGTH + 4 then
		return
	end
	local hi, lo = buf(20, 2):uint(), buf(22, 2):uint()
	local kinds = {}
	if bit.band(hi, 0x4000) ~= 0 then kinds[#kinds + 1] = "Send" end
	if bit.band(lo, 0x8000) ~= 0 then kinds[#kinds + 1] = "Write" end
	if bit.band(lo, 0x4000) ~= 0 then kinds[#kinds + 1] = "Read" end
	t:add(f.a, buf(20, 2), bit.band(hi, 0x8000) ~= 0)
	t:add(f.rtr, buf(20, 4), table.concat(kinds, ", "))
	t:add(f.ird, buf(20, 2), bit.band(hi, 0x3fff))
	t:add(f.ord, buf(22, 2), bit.band(lo, 0x3fff))
end

local function immediate(buf, at, tree, opcode)
	local names = { [8] = "Immediate Data", [9] = "Immediate Data with SE",
			[15] = "Send with Immediate (uwarp)" }
	local t = tree:add(p, buf(at), names[opcode])

	t:add(f.op, buf(at + 3, 1), names[opcode])
	if opcode == 15 then
		t:add(f.imm, buf(at + 4, 4))
		t:add(f.se, buf(at + 3, 1), bit.band(buf(at + 3, 1):uint(), 0x10) ~= 0)
	else
		t:add(f.imm, buf(at + 20, 8))
		t:add(f.se, buf(at + 3, 1), opcode == 9)
	end
end

-- FPDU after FPDU: length, ULPDU, pad to four, CRC.
local function fpdus(buf, tree)
	local at = 0

	while at + 22 <= buf:len() do
		local length = buf(at, 2):uint()
		local size = 2 + length + (-(2 + length)) % 4 + 4
		local opcode = bit.band(buf(at + 3, 1):uint(), 0x0f)
		local tagged = buf(at + 2, 1):uint() >= 0x80

		if length < 14 or at + size > buf:len() then
			return
		end
		if not tagged and (opcode == 15 or ((opcode == 8 or opcode == 9) and length >= 26)) then
			immediate(buf, at, tree, opcode)
		end
		at = at + size
	end
end

function p.dissector(_, _, tree)
	local payload = tcp_payload()

	if not payload then
		return
	end
	local buf = payload.range
	if buf:len() >= START_LENGTH and buf(0, KEY_LENGTH):string():match("^MPA ID Re[qp] Frame$") then
		start_frame(buf, tree)
	elseif mpa() then
		fpdus(buf, tree)
	end
end

register_postdissector(p)
