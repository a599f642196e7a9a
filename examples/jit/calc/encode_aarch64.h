/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aarch64 instructions. Source: Arm Architecture Reference Manual, part C6.
 *
 *	x0 … x6			integer temporaries 0 to 6
 *	d0 … d6			double temporaries 0 to 6
 *	x9, x16, x17, d16, d17	scratch, within one emit_ function
 *	x19			the runtime
 *	x29			the frame: its record (x29, x30), slots, then parameters
 */
#ifndef CALC_ENCODE_AARCH64_H
#define CALC_ENCODE_AARCH64_H

enum {
	X0 = 0,
	X1 = 1,
	X2 = 2,
	X9 = 9,
	X16 = 16,
	X17 = 17,
	D16 = 16,
	D17 = 17,
	RT = 19,
	FP = 29,
	LR = 30,
	SP = 31, /* as a base, and in additions of a number */
	ZR = 31, /* elsewhere */
};

/* Conditions, as in b.cond; the lowest bit inverts. */
enum {
	CC_EQ = 0x0,
	CC_NE = 0x1,
	CC_HS = 0x2,
	CC_LO = 0x3,
	CC_MI = 0x4,
	CC_PL = 0x5,
	CC_LS = 0x9,
	CC_GE = 0xa,
	CC_LT = 0xb,
	CC_GT = 0xc,
	CC_LE = 0xd,
};

/* Loads and stores with an offset of 12 bits in units of 8; or with register * 8. */
#define LDR	0xf9400000u
#define STR	0xf9000000u
#define LDR_D	0xfd400000u
#define STR_D	0xfd000000u
#define LDR_X8	0xf8607800u
#define STR_X8	0xf8207800u
#define LDR_DX8 0xfc607800u
#define STR_DX8 0xfc207800u
#define LDUR	0xf8400000u
#define LDUR_D	0xfc400000u
#define STP	0xa9000000u
#define LDP	0xa9400000u
#define ADD	0x8b000000u
#define SUB	0xcb000000u
#define SUBS	0xeb000000u
#define ADD_IMM 0x91000000u
#define SUB_IMM 0xd1000000u
#define CMP_IMM 0xf100001fu
#define CMN_IMM 0xb100001fu
#define CMP_SP	0xeb3063ffu /* sp with x16 */
#define MOV	0xaa0003e0u
#define MUL	0x9b007c00u
#define MSUB	0x9b008000u
#define SDIV	0x9ac00c00u
#define CSET	0x9a9f07e0u
#define FADD	0x1e602800u
#define FSUB	0x1e603800u
#define FMUL	0x1e600800u
#define FDIV	0x1e601800u
#define FNEG	0x1e614000u
#define FABS	0x1e60c000u
#define FCMP	0x1e602000u
#define FMOV	0x1e604000u
#define FMOV_DX 0x9e670000u
#define SCVTF	0x9e620000u
#define FCVTZS	0x9e780000u
#define B	0x14000000u
#define BCOND	0x54000000u
#define CBZ	0xb4000000u
#define BLR	0xd63f0000u
#define BR	0xd61f0000u
#define RET	0xd65f03c0u

#endif
