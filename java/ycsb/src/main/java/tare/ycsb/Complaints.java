package tare.ycsb;

import java.util.concurrent.atomic.AtomicInteger;

/** Says why operations fail, the first few times: YCSB itself only counts them. */
final class Complaints {
  private static final int MOST = 20;
  private static final AtomicInteger SAID = new AtomicInteger();

  private Complaints() {
  }

  static void say(Exception why) {
    if (SAID.getAndIncrement() < MOST) {
      String words = String.valueOf(why.getMessage()).replace('\n', ' ');
      System.err.println("Operation failed: " + why.getClass().getSimpleName() + ": " + words);
    }
  }
}
